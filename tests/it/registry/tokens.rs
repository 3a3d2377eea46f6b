//! What tokens are asked for.

use hallmark::base::Arch;
use hallmark::image::registry::find;
use hallmark::net::Error;
use hallmark::net::registry::{Purpose, Reference, Registries};

use super::client;
use super::locks::Parts;
use crate::net::server::{Do, Server, answer, ok};

fn wants_token(realm: &str) -> Vec<Do> {
    let wants = format!(r#"Bearer realm="{realm}/token",service="x""#);
    answer("401 Unauthorized", &[("WWW-Authenticate", &wants)], "")
}

#[test]
fn whoever_reads_asks_for_no_leave_to_write() {
    let parts = Parts::new();
    let (digest, served) = (parts.digest(), parts.clone());
    let registry = Server::start(move |request| {
        if request.target.starts_with("/token") {
            return if request.target.contains("push") {
                answer("403 Forbidden", &[], "")
            } else {
                ok("application/json", r#"{"token": "t"}"#)
            };
        }
        match request.header("authorization") {
            Some("Bearer t") => served.answer(request),
            _ => wants_token(&format!("http://{}", request.header("host").unwrap())),
        }
    });
    let client = client(Registries::default());
    let name = format!("{}/a:t@{digest}", registry.authority());
    let found = find(&client, &Reference::parse(&name).unwrap(), Arch::HOST).unwrap();
    assert_eq!(found.digest, digest);
    let tokens = registry.targets().into_iter().filter(|target| target.starts_with("/token"));
    assert_eq!(tokens.collect::<Vec<_>>(), ["/token?service=x&scope=repository%3Aa%3Apull"]);
    // Whoever writes is refused here.
    let repository = client.repository(&registry.authority(), "a").unwrap();
    let tagged = repository.tagged("t", Purpose::Pull).unwrap();
    assert_eq!(tagged.map(|tagged| tagged.digest), Some(digest));
    assert!(matches!(repository.tagged("t", Purpose::Push), Err(Error::Denied { .. })));
}
