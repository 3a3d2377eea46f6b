//! A small HTTP server that does what it is told, good or bad.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The first word of the request line.
    pub(crate) method: String,
    /// The target of the request line.
    pub(crate) target: String,
    /// Header lines, lower-case.
    pub(crate) headers: Vec<(String, String)>,
    /// How many requests came before, all targets together.
    pub(crate) number: usize,
    /// What it carries; only as much as the server cared to read.
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// One thing that the server does, in order.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    Wait(u64),
    /// Sends this piece again and again, so many milliseconds apart, until the client goes.
    Drip(Vec<u8>, u64),
    /// Drops the connection with a reset.
    Reset,
}

/// A whole good answer.
pub(crate) fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Vec<Do> {
    answer("200 OK", &[("Content-Type", content_type)], body)
}

/// An answer with its length.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<Do> {
    let body = body.as_ref();
    let mut out = head(status, headers, Some(body.len()));
    out.extend(body);
    vec![Do::Send(out)]
}

/// The head of an answer.
pub(crate) fn head(status: &str, headers: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("Content-Length: {length}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

type Handler = dyn Fn(&Request) -> Vec<Do> + Send + Sync;

/// How many bytes of a request's body are read before it is handled; `None` for all of them.
type Cut = dyn Fn(&Request) -> Option<usize> + Send + Sync;

/// Serves until dropped.
pub(crate) struct Server {
    address: SocketAddr,
    secure: bool,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static) -> Self {
        Self::with_tls(None, |_| None, handler)
    }

    /// The same, but of some bodies only a beginning is read.
    pub(crate) fn start_cutting(
        cut: impl Fn(&Request) -> Option<usize> + Send + Sync + 'static,
        handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static,
    ) -> Self {
        Self::with_tls(None, cut, handler)
    }

    /// The same over TLS, with the certificate of the fixtures.
    pub(crate) fn start_secure(
        handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static,
    ) -> Self {
        use rustls::pki_types::pem::PemObject as _;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let certificate = CertificateDer::from_pem_file(certificate_path()).unwrap();
        let key = PrivateKeyDer::from_pem_file(fixture("test-server.key")).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
        Self::with_tls(Some(Arc::new(config)), |_| None, handler)
    }

    fn with_tls(
        tls: Option<Arc<rustls::ServerConfig>>,
        cut: impl Fn(&Request) -> Option<usize> + Send + Sync + 'static,
        handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            secure: tls.is_some(),
            requests: Arc::default(),
            stop: Arc::default(),
        };
        let (requests, stop) = (Arc::clone(&server.requests), Arc::clone(&server.stop));
        let handler: Arc<Handler> = Arc::new(handler);
        let cut: Arc<Cut> = Arc::new(cut);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (requests, handler, cut, tls) =
                    (Arc::clone(&requests), Arc::clone(&handler), Arc::clone(&cut), tls.clone());
                std::thread::spawn(move || {
                    // A client that goes away is no fault of the server.
                    let _ = match tls {
                        None => serve(&stream, &mut &stream, &requests, &*cut, &*handler),
                        Some(config) => {
                            let mut connection = rustls::ServerConnection::new(config).unwrap();
                            let mut socket = &stream;
                            let mut tls = rustls::Stream::new(&mut connection, &mut socket);
                            serve(&stream, &mut tls, &requests, &*cut, &*handler)
                        }
                    };
                });
            }
        });
        server
    }

    /// The server's address, ending in a slash.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    /// What was asked for so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The targets asked for so far.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.target).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

pub(crate) fn certificate_path() -> std::path::PathBuf {
    fixture("test-server.pem")
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/net").join(name)
}

fn serve<S: Read + Write>(
    socket: &TcpStream,
    stream: &mut S,
    requests: &Mutex<Vec<Request>>,
    cut: &Cut,
    handler: &Handler,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.lines();
    let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_lowercase(), value.to_owned()))
        .collect();
    let mut request = Request { method, target, headers, number: 0, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    let length = cut(&request).unwrap_or(length).min(length);
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body)?;
    {
        let mut requests = requests.lock().unwrap();
        request.number = requests.len();
        requests.push(request.clone());
    }
    for step in handler(&request) {
        match step {
            Do::Send(bytes) => stream.write_all(&bytes)?,
            Do::Wait(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
            Do::Drip(bytes, milliseconds) => loop {
                stream.write_all(&bytes)?;
                stream.flush()?;
                std::thread::sleep(Duration::from_millis(milliseconds));
            },
            Do::Reset => {
                rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
                return Ok(());
            }
        }
    }
    stream.flush()?;
    // Close only after the client has read, so that nothing unread becomes a reset.
    socket.shutdown(std::net::Shutdown::Write)
}
