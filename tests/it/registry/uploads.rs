//! Uploads to registries that never have enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hallmark::net::Error;
use hallmark::net::registry::{Registries, Uploaded};

use super::{Shop, client, noise};
use crate::net::server::{Do, Request, Server, answer};

const PIECE: u64 = 2 << 20;
const SIZE: usize = 9 << 20;

/// Uploads a blob to a registry that says after each piece how many bytes it has, and counts what it was sent.
fn upload(
    says: impl Fn(&Request, usize) -> String + Send + Sync + 'static,
) -> (Result<Uploaded, Error>, usize) {
    let shop = Shop::new();
    let digest = shop.store.put_blob(&noise("large", SIZE)).unwrap();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    let server = Server::start(move |request| {
        counted.fetch_add(request.body.len(), Ordering::SeqCst);
        let place = ("Location", "/next");
        match request.method.as_str() {
            "POST" => answer("202 Accepted", &[place], ""),
            "PUT" => answer("201 Created", &[], ""),
            // It would go on for ever, and this server keeps what it is sent.
            _ if request.number > 100 => vec![Do::Reset],
            _ => answer("202 Accepted", &[place, ("Range", &says(request, request.number))], ""),
        }
    });
    let registries = Registries { largest_piece: PIECE, ..Registries::default() };
    let repository = client(registries).repository(&server.authority(), "a/b").unwrap();
    let path = shop.store.blob_path(&digest);
    let result = repository.upload(&digest, SIZE as u64, &path, None, &|_| {});
    (result, came.load(Ordering::SeqCst))
}

/// Where a piece begins.
fn start(request: &Request) -> usize {
    let range = request.header("content-range").unwrap_or("0-");
    range.split_once('-').unwrap().0.parse().unwrap()
}

#[test]
fn a_registry_that_takes_a_byte_of_each_piece_is_left() {
    let (result, came) = upload(|_, number| format!("0-{number}"));
    let error = result.unwrap_err();
    assert!(error.to_string().contains("took next to nothing of a piece"), "{error}");
    assert!(came <= 2 * SIZE, "{came}");
}

#[test]
fn a_registry_that_takes_half_of_each_piece_gets_smaller_ones() {
    let (result, came) =
        upload(|request, _| format!("0-{}", start(request) + request.body.len().min(1 << 20) - 1));
    assert_eq!(result.unwrap(), Uploaded::Sent);
    assert!(came <= SIZE + usize::try_from(PIECE).unwrap(), "{came}");
}

#[test]
fn a_registry_cannot_have_more_than_there_is() {
    let (result, _) = upload(|_, _| format!("0-{}", u64::MAX));
    let error = result.unwrap_err();
    assert!(error.to_string().contains("it has more than it was sent"), "{error}");
}

#[test]
fn requests_that_carry_nothing_say_so() {
    let shop = Shop::new();
    let digest = shop.store.put_blob(b"").unwrap();
    let server = Server::start(|request| match request.method.as_str() {
        "POST" => answer("202 Accepted", &[("Location", "/next")], ""),
        _ => answer("201 Created", &[], ""),
    });
    let repository = client(Registries::default()).repository(&server.authority(), "a").unwrap();
    repository.upload(&digest, 0, &shop.store.blob_path(&digest), None, &|_| {}).unwrap();
    let lengths: Vec<(String, Option<String>)> = server
        .requests()
        .into_iter()
        .map(|request| {
            (request.method.clone(), request.header("content-length").map(str::to_owned))
        })
        .collect();
    let zero = |method: &str| (method.to_owned(), Some("0".to_owned()));
    assert_eq!(lengths, [zero("POST"), zero("PUT")]);
}
