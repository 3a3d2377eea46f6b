//! A connection that was seen to work. Calls block, each with a deadline and the flag that ends waits; the tokio
//! runtime stays inside.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as ClientError;
use tokio::runtime::{Builder, Runtime};

use super::daemon::{ApiVersion, Daemon, product};
use super::{DaemonError, Endpoint};
use crate::base::Cancel;
use crate::base::cancel::until_cancelled;

/// How long a daemon may take to say who it is. A healthy one takes milliseconds; one that is just starting, seconds.
const HELLO: Duration = Duration::from_secs(20);

/// The client's own limit on answers: ours are set for each call.
const NO_LIMIT: u64 = 365 * 24 * 3600;

/// A daemon that answers. Cheap to clone; safe to share between threads.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: String,
    docker: Docker,
    daemon: Daemon,
    background: Background,
}

/// The tokio runtime; `None` only while dropping.
struct Background(Option<Runtime>);

impl Background {
    fn start() -> Result<Self, DaemonError> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name("hallmark-docker").enable_all();
        Ok(Self(Some(builder.build().map_err(DaemonError::Setup)?)))
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("the runtime lives as long as its owner").block_on(work)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A name look-up or a connection that hangs has nobody to wait for it any more.
            runtime.shutdown_background();
        }
    }
}

impl Engine {
    /// Connects to the first of these daemons that is there.
    ///
    /// # Errors
    ///
    /// Where none is there, [`DaemonError::NoDaemon`] names every place. A place where something answers that cannot be
    /// used (no permission, too old, no daemon at all) ends the search: another daemon would be a surprise.
    pub fn connect(candidates: &[Endpoint], cancel: &Cancel) -> Result<Self, DaemonError> {
        let background = Background::start()?;
        let mut absent = Vec::new();
        for endpoint in candidates {
            let answer = background.wait(async {
                until_cancelled(cancel, tokio::time::timeout(HELLO, hello(endpoint))).await
            })?;
            let answer = answer.map_err(|_| DaemonError::TimedOut {
                endpoint: endpoint.to_string(),
                doing: "say who it is".to_owned(),
                limit: HELLO,
            });
            match answer.flatten() {
                Ok((docker, daemon)) => {
                    let endpoint = endpoint.to_string();
                    let shared = Shared { endpoint, docker, daemon, background };
                    return Ok(Self { shared: Arc::new(shared) });
                }
                Err(DaemonError::NoDaemon { looked }) => absent.extend(looked),
                Err(error) => return Err(error),
            }
        }
        Err(DaemonError::NoDaemon { looked: absent })
    }

    /// What the daemon is.
    pub fn daemon(&self) -> &Daemon {
        &self.shared.daemon
    }

    /// Where it is.
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// The client, to make futures for [`Engine::call`] and [`Engine::wait`]. It sets no deadline of its own.
    pub fn docker(&self) -> &Docker {
        &self.shared.docker
    }

    /// Makes one call and waits for its whole answer, but no longer than `limit`, and no longer than until the end
    /// is asked for. `doing` tells people what is asked, as in "the daemon cannot ... ".
    pub fn call<T>(
        &self,
        doing: &str,
        limit: Duration,
        cancel: &Cancel,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, DaemonError> {
        self.wait(async { until_cancelled(cancel, tokio::time::timeout(limit, work)).await })?
            .map_err(|_| self.timed_out(doing, limit))?
            .map_err(|error| self.failure(doing, error))
    }

    /// Waits for anything that goes on with the client: streams with deadlines of their own.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.shared.background.wait(work)
    }

    /// What an error of the client means here.
    pub fn failure(&self, doing: &str, error: ClientError) -> DaemonError {
        DaemonError::of_call(&self.shared.endpoint, doing, error)
    }

    /// The end of a run's output is not there.
    pub(crate) fn cut_output(&self) -> DaemonError {
        DaemonError::CutOutput { endpoint: self.endpoint().to_string() }
    }

    /// No answer within `limit`.
    pub fn timed_out(&self, doing: &str, limit: Duration) -> DaemonError {
        let endpoint = self.shared.endpoint.clone();
        DaemonError::TimedOut { endpoint, doing: doing.to_owned(), limit }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("endpoint", &self.shared.endpoint)
            .field("daemon", &self.shared.daemon)
            .finish_non_exhaustive()
    }
}

/// Asks who is there, and settles the API version.
async fn hello(endpoint: &Endpoint) -> Result<(Docker, Daemon), DaemonError> {
    let name = endpoint.to_string();
    let newest = bollard::API_DEFAULT_VERSION;
    let docker = match endpoint {
        Endpoint::Unix(path) => {
            // The client takes a socket in a folder that is closed to this user for absent.
            let looked = |error: std::io::Error| {
                DaemonError::of_first_call(&name, &ClientError::IOError { err: error })
            };
            path.symlink_metadata().map_err(looked)?;
            Docker::connect_with_unix(&path.to_string_lossy(), NO_LIMIT, newest)
        }
        Endpoint::Tcp(place) => Docker::connect_with_http(place, NO_LIMIT, newest),
    };
    let failed = |error: ClientError| DaemonError::of_first_call(&name, &error);
    let docker = docker.map_err(failed)?;
    let version = docker.version().await.map_err(failed)?;
    let api = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
    let Some(spoken) = api(&version.api_version) else {
        let reason = "it names no API version".to_owned();
        return Err(DaemonError::NotADaemon { endpoint: name, reason });
    };
    let (product, own) = (product(&version).name(), version.version.clone().unwrap_or_default());
    if spoken < ApiVersion::OLDEST {
        return Err(DaemonError::TooOld {
            endpoint: name,
            product,
            version: own,
            actual: spoken,
            expected: ApiVersion::OLDEST,
        });
    }
    let newest = ApiVersion::newest();
    if let Some(oldest) = api(&version.min_api_version).filter(|oldest| *oldest > newest) {
        return Err(DaemonError::TooNew {
            endpoint: name,
            product,
            version: own,
            actual: oldest,
            expected: newest,
        });
    }
    // The client asks without a version, which means the daemon's newest: pin what both know.
    let agreed = spoken.min(newest);
    let docker = docker.with_request_modifier(move |request| pin(request, agreed));
    let info = docker
        .info()
        .await
        .map_err(|error| DaemonError::of_call(&name, "describe itself", error))?;
    Ok((docker, Daemon::new(&version, &info, agreed)))
}

/// Puts the API version in front of a request's path.
fn pin(mut request: bollard::BollardRequest, version: ApiVersion) -> bollard::BollardRequest {
    let mut parts = request.uri().clone().into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", |path| path.as_str());
    parts.path_and_query =
        Some(format!("/v{version}{path}").parse().expect("a longer path is a path"));
    *request.uri_mut() = parts.try_into().expect("the other parts are as before");
    request
}
