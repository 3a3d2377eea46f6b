//! The HTTP client against real archives; against hostile ones in the modules below.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::net::{self, Client, Config, Host, Patience};

mod hostile;
pub(crate) mod server;
mod settings;

/// Waits that a test can afford.
pub(crate) fn eager() -> Patience {
    let short = Duration::from_millis(500);
    Patience {
        connect: short,
        answer: short,
        idle: short,
        window: short,
        trickle: 100,
        first_wait: Duration::from_millis(10),
        longest_wait: Duration::from_millis(20),
        ..Patience::default()
    }
}

/// All archives are this server.
pub(crate) fn config_for(server: &server::Server) -> Config {
    let url = server.url();
    let env: BTreeMap<String, String> = [
        ("HALLMARK_PYPI_INDEX", format!("{url}simple/")),
        ("HALLMARK_DEBIAN_MIRROR", format!("{url}debian")),
        ("HALLMARK_DEBIAN_SNAPSHOT", format!("{url}snapshot")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let nowhere = Path::new("/nonexistent");
    let config = Config::read(&Host { env: &env, home: None, root: nowhere }).unwrap();
    Config { patience: eager(), ..config }
}

pub(crate) fn client_for(server: &server::Server) -> Client {
    Client::new(config_for(server), &Cancel::new()).unwrap()
}

/// A client set up as this host says, or `None` with a message when there is no network.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn online_client() -> Option<Client> {
    #[expect(clippy::disallowed_methods, reason = "the test runner's own environment")]
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let home = env.get("HOME").map(Path::new);
    let config = Config::from_host(&env, home).unwrap();
    if config.offline {
        eprintln!("skipped: HALLMARK_OFFLINE is set");
        return None;
    }
    let client = Client::new(config, &Cancel::new()).unwrap();
    match net::pypi::files(&client, "flit-core") {
        Ok(_) => Some(client),
        Err(error) => {
            eprintln!("skipped: the index cannot be reached: {error}");
            None
        }
    }
}

#[test]
fn online_index_lists_known_files() {
    let Some(client) = online_client() else { return };
    let files = net::pypi::files(&client, "Flit_Core").unwrap();
    let file = files.iter().find(|file| file.name == "flit_core-2.0.1.tar.gz").unwrap();
    assert_eq!(file.size, Some(22616));
    assert_eq!(
        file.sha256.unwrap().hex(),
        "96e7708bc88c03b58e0d35f1171197737e701e29a901a8b49c13d3fd21866560"
    );
    let error = net::pypi::files(&client, "hallmark-no-such-project-0").unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[test]
fn online_mirror_gives_a_release_and_its_index() {
    let Some(client) = online_client() else { return };
    let release = net::debian::release(&client, "bookworm", None).unwrap();
    let text = String::from_utf8(release).unwrap();
    let row = text
        .lines()
        .skip_while(|line| *line != "SHA256:")
        .find(|line| line.ends_with(" main/binary-amd64/Packages.xz"))
        .unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    let digest = hallmark::base::Digest::from_hex(words[0]).unwrap();
    let size = words[1].parse().unwrap();
    let now = hallmark::base::clock::now();
    let arch = hallmark::base::Arch::Amd64;
    let packages = net::debian::packages(&client, "bookworm", arch, digest, size, now).unwrap();
    assert_eq!(packages.len() as u64, size);
}
