//! What can go wrong between a client and the API server, and when?
//!
//! A [`Wire`] lies between the product and its API server and misbehaves from a seed: it delays and
//! reorders, refuses writes as the server may (409, 429, 500), loses requests and replies, cuts
//! watches and lets their version expire. It can also count writes and, at a chosen one, hang for
//! ever: that is the crash of a process whose last write took effect and who never learnt of it.
//!
//! Whoever wants to know can look on ([`sight`]). Knows HTTP and nothing of what the objects mean.

pub mod sight;
mod weather;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kube::client::Body;
use soroi_clock::{Clock, Machine};
use soroi_watch::SplitMix64;
use tower::Service;

use sight::{Onlooker, Sender, Sight, What};
use weather::Weather;

/// An error of the wire or of the service behind it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Trouble stops after so many faults, so that what must be seen in the end can be seen.
const FAULTS_MAX: u32 = 60;
/// A storm lasts until the story says that it is over; this bounds one that never would.
const STORM_FAULTS_MAX: u32 = 2_000;
/// Frames of a watch that may be on their way at once.
const LAGGING_MAX: usize = 1_000;
/// Requests that are remembered for the trace of a failure.
const LOG_MAX: usize = 60;
/// The longest that a process is away in a storm.
pub const STORM_RESTART_MAX: Duration = Duration::from_secs(60);
/// How long a crashed process takes to come back.
const RESTART: Duration = Duration::from_secs(1);

/// How a wire behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It carries everything, at once.
    None,
    /// It misbehaves from this seed.
    Seed(u64),
    /// After this write (from 1) took effect, nothing comes back any more.
    CrashAfterWrite(u64),
    /// It misbehaves from this seed for longer, and kills the process after some of its writes.
    Storm(u64),
}

impl Trouble {
    /// What its choices are drawn from.
    pub const fn seed(self) -> u64 {
        match self {
            Self::Seed(seed) | Self::Storm(seed) => seed,
            Self::None | Self::CrashAfterWrite(_) => 0,
        }
    }

    /// After how many faults everything is carried.
    const fn faults_max(self) -> u32 {
        match self {
            Self::Seed(_) => FAULTS_MAX,
            Self::Storm(_) => STORM_FAULTS_MAX,
            Self::None | Self::CrashAfterWrite(_) => 0,
        }
    }
}

/// The state of a wire; clones are the same wire, and the same process at its end.
#[derive(Clone)]
pub struct Wire {
    clock: Clock,
    state: Arc<Mutex<State>>,
    crashed: Arc<tokio::sync::Notify>,
    /// Who is at its end.
    sender: Sender,
    onlooker: Arc<OnceLock<Onlooker>>,
    /// While it sleeps nothing is sent, and nothing that comes is heard.
    machine: Option<Machine>,
}

struct State {
    trouble: Trouble,
    weather: Weather,
    /// Nothing goes wrong for now.
    lull: bool,
    random: SplitMix64,
    faults: u32,
    writes: u64,
    log: VecDeque<String>,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Carried,
    /// Answered by the wire; never performed.
    Refused(StatusCode),
    /// Never performed, and no answer.
    RequestLost,
    /// Performed, and no answer.
    ReplyLost,
    /// Performed; the process is dead before the answer comes.
    Crash,
}

impl Wire {
    /// A wire in good order.
    pub fn new(clock: Clock, trouble: Trouble) -> Self {
        let random = SplitMix64::new(trouble.seed());
        let weather = match trouble {
            Trouble::Storm(seed) => Weather::of_storm(seed),
            _ => weather::MILD,
        };
        let state =
            State { trouble, weather, lull: false, random, faults: 0, writes: 0, log: VecDeque::new() };
        let crashed = Arc::new(tokio::sync::Notify::new());
        let sender = Sender { who: "", number: 0 };
        let state = Arc::new(Mutex::new(state));
        Self { clock, state, crashed, sender, onlooker: Arc::default(), machine: None }
    }

    /// The same wire for another process, on this machine: it crashes on its own.
    pub(crate) fn process(&self, sender: Sender, machine: Machine) -> Self {
        let process = Self { crashed: Arc::default(), sender, machine: Some(machine), ..self.clone() };
        process.tell("", What::Began);
        process
    }

    /// From now on somebody looks on; nobody else can after that.
    pub(crate) fn look_on(&self, onlooker: Onlooker) {
        // A second onlooker would be a mistake of a test, and sees nothing.
        _ = self.onlooker.set(onlooker);
    }

    fn tell(&self, path: &str, what: What) {
        if let Some(onlooker) = self.onlooker.get() {
            onlooker(&Sight { sender: self.sender, path: path.to_owned(), what });
        }
    }

    /// Carries everything until the lull is over.
    pub(crate) fn set_lull(&self, lull: bool) {
        self.state().lull = lull;
    }

    /// `service` as it is reached over this wire.
    pub(crate) fn service<S>(&self, service: S) -> Wired<S> {
        Wired { wire: self.clone(), service }
    }

    /// A client whose requests go over this wire to `service`. Must be called within a runtime.
    pub fn client<S, B>(&self, service: S) -> kube::Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        kube::Client::new(self.service(service), "default")
    }

    /// Resolves when the crash has happened. The process must then be dropped.
    pub async fn crash(&self) {
        self.crashed.notified().await;
        self.tell("", What::Crashed);
    }

    /// Carries everything from now on.
    pub fn heal(&self) {
        self.state().trouble = Trouble::None;
    }

    /// How many writes went over the wire.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// How often it misbehaved.
    pub fn faults(&self) -> u32 {
        self.state().faults
    }

    /// Whether a process that crashes now would be followed by more crashes.
    pub fn storms(&self) -> bool {
        matches!(self.state().trouble, Trouble::Storm(_))
    }

    /// How long a process takes to come back after a crash: a second, in a storm anything up to a
    /// minute.
    pub fn restart(&self) -> Duration {
        let mut state = self.state();
        match state.trouble {
            Trouble::Storm(_) => Duration::from_millis(1 << state.random.below(17)).min(STORM_RESTART_MAX),
            _ => RESTART,
        }
    }

    /// The last requests and what became of them, oldest first.
    pub fn log(&self) -> Vec<String> {
        self.state().log.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not hide what the wire has seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_line(&self, line: String) {
        let mut state = self.state();
        if state.log.len() == LOG_MAX {
            state.log.pop_front();
        }
        state.log.push_back(line);
    }
}

impl State {
    fn fate(&mut self, request: &Request<Body>) -> Fate {
        let write = !matches!(*request.method(), Method::GET | Method::HEAD);
        if write {
            self.writes += 1;
        }
        match self.trouble {
            Trouble::None => Fate::Carried,
            Trouble::CrashAfterWrite(at) if write && self.writes == at => Fate::Crash,
            Trouble::CrashAfterWrite(_) => Fate::Carried,
            Trouble::Seed(_) | Trouble::Storm(_) => self.drawn_fate(request, write),
        }
    }

    /// Whether things go wrong now.
    fn is_troubled(&self) -> bool {
        !self.lull && self.faults < self.trouble.faults_max()
    }

    fn drawn_fate(&mut self, request: &Request<Body>, write: bool) -> Fate {
        if !self.is_troubled() {
            return Fate::Carried;
        }
        if write && self.storms() {
            let one_in = match is_turn(request) {
                true => self.weather.crash_at_turns_in.min(self.weather.crash_in),
                false => self.weather.crash_in,
            };
            if self.random.below(one_in) == 0 {
                self.faults += 1;
                return Fate::Crash;
            }
        }
        let method = request.method();
        let fate = match self.random.below(self.weather.faults_in) {
            0 if write => Fate::ReplyLost,
            1 => Fate::RequestLost,
            // A conflict is an answer to an update; a create or a delete is told to come back.
            2 if matches!(*method, Method::PUT | Method::PATCH) => Fate::Refused(StatusCode::CONFLICT),
            2 if write => Fate::Refused(StatusCode::TOO_MANY_REQUESTS),
            3 => Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR),
            _ => return Fate::Carried,
        };
        self.faults += 1;
        fate
    }

    fn storms(&self) -> bool {
        matches!(self.trouble, Trouble::Storm(_))
    }

    /// How long a request is on its way there, and its reply back.
    fn delays(&mut self, list: bool) -> (Duration, Duration) {
        if self.lull || !matches!(self.trouble, Trouble::Seed(_) | Trouble::Storm(_)) {
            return (Duration::ZERO, Duration::ZERO);
        }
        let there = self.weather.delay(&mut self.random);
        let back = self.weather.delay(&mut self.random);
        let late = if list { self.weather.list_delay(&mut self.random) } else { Duration::ZERO };
        (there + late, back)
    }

    /// How a watch will be, if it is not in good order.
    fn watch(&mut self) -> Option<WatchFate> {
        if !self.is_troubled() || !matches!(self.trouble, Trouble::Seed(_) | Trouble::Storm(_)) {
            return None;
        }
        self.faults += 1;
        let (life, expired) = self.weather.life(&mut self.random);
        Some(WatchFate { life, expired, lag: self.weather.lag(&mut self.random) })
    }
}

/// What happens to a watch.
struct WatchFate {
    life: Duration,
    /// It ends with word that its version is too old.
    expired: bool,
    /// Everything comes so much later.
    lag: Duration,
}

/// Whether something begins or ends with this write: a gang's record, its binding, its release.
fn is_turn(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    path.contains("/gangplans") || path.ends_with("/binding") || path.contains("/jobs/")
}

/// The service that a wire's client calls.
#[derive(Clone)]
pub(crate) struct Wired<S> {
    wire: Wire,
    service: S,
}

impl<S, B> Service<Request<Body>> for Wired<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The service that was polled ready is the one that must be called.
        let fresh = self.service.clone();
        let service = std::mem::replace(&mut self.service, fresh);
        Box::pin(carry(self.wire.clone(), service, request))
    }
}

async fn carry<S, B>(
    wire: Wire,
    mut service: S,
    request: Request<Body>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let list = !watch && request.uri().query().is_some_and(|query| query.contains("limit="));
    let (fate, (there, back)) = {
        let mut state = wire.state();
        (state.fate(&request), state.delays(list))
    };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let colon = if wire.sender.who.is_empty() { "" } else { ": " };
    let what = format!("{}{colon}{method} {path}", wire.sender.who);
    let reading = method == Method::GET;
    if fate != Fate::Carried {
        wire.tell(&path, What::Hindered);
    }
    wire.pause(there).await;
    // Whatever was checked before it was sent was checked before the sleep.
    wire.awake().await;
    match fate {
        Fate::RequestLost => {
            wire.log_line(format!("{what}: request lost"));
            return Err("the connection was reset (before the request arrived)".into());
        }
        Fate::Refused(code) => {
            wire.log_line(format!("{what}: refused {code}"));
            return Ok(refusal(code));
        }
        Fate::Carried | Fate::ReplyLost | Fate::Crash => {}
    }
    let (request, body) = wire.read(request).await?;
    let response = service.call(request).await.map_err(Into::into)?;
    if !reading {
        wire.log_line(format!("{what}: {} {fate:?}", response.status().as_u16()));
    }
    if response.status().is_success()
        && let Some(body) = body
    {
        wire.tell(&path, What::Wrote { method, body });
    }
    if fate == Fate::Crash {
        wire.crashed.notify_one();
        std::future::pending::<()>().await;
    }
    wire.pause(back).await;
    wire.awake().await;
    if fate == Fate::ReplyLost {
        return Err("the connection was reset (after the request was carried out)".into());
    }
    if list && response.status().is_success() {
        wire.tell(&path, What::Listed);
    }
    let cut = if watch && response.status().is_success() { wire.state().watch() } else { None };
    Ok(response.map(|body| match (cut, watch) {
        (Some(fate), _) => wire.heard(troubled(body, wire.clock.clone(), fate)),
        (None, true) => wire.heard(body.map_err(Into::into).boxed_unsync()),
        (None, false) => body.map_err(Into::into).boxed_unsync(),
    }))
}

impl Wire {
    /// A write with what it carries, if somebody looks on.
    async fn read(
        &self,
        request: Request<Body>,
    ) -> Result<(Request<Body>, Option<serde_json::Value>), BoxError> {
        if *request.method() == Method::GET || self.onlooker.get().is_none() {
            return Ok((request, None));
        }
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await?;
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok((Request::from_parts(parts, Body::from(bytes.to_vec())), Some(value)))
    }

    async fn pause(&self, span: Duration) {
        if !span.is_zero() {
            self.clock.sleep(span).await;
        }
    }

    async fn awake(&self) {
        if let Some(machine) = &self.machine {
            machine.awake().await;
        }
    }

    /// The body of a watch, of which nothing is heard in sleep.
    fn heard(&self, body: UnsyncBoxBody<Bytes, BoxError>) -> UnsyncBoxBody<Bytes, BoxError> {
        let Some(machine) = self.machine.clone() else { return body };
        let frames = BodyStream::new(body).then(move |frame| {
            let machine = machine.clone();
            async move {
                machine.awake().await;
                frame
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// The body of a watch that lags, and ends early: with an `ERROR` 410 event if its version expired.
fn troubled<B>(body: B, clock: Clock, fate: WatchFate) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let WatchFate { life, expired, lag } = fate;
    let ends = clock.clone();
    let end = Box::pin(async move { ends.sleep(life).await });
    let last = expired.then(|| {
        let status = status_object(StatusCode::GONE, "Expired", "too old resource version");
        Ok(http_body::Frame::data(Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"))))
    });
    let frames = BodyStream::new(body).map(|frame| frame.map_err(Into::into));
    let frames = match lag.is_zero() {
        true => frames.boxed(),
        false => lagging(frames, clock, lag).boxed(),
    };
    let frames = frames.take_until(end).chain(futures::stream::iter(last));
    StreamBody::new(frames).boxed_unsync()
}

/// Everything comes so much later, in its order: what comes meanwhile waits no longer than that.
fn lagging<S: futures::Stream<Item: Send> + Send + 'static>(
    frames: S,
    clock: Clock,
    lag: Duration,
) -> impl futures::Stream<Item = S::Item> + Send + 'static {
    let late = frames.map(move |frame| {
        let due = clock.now() + lag;
        let clock = clock.clone();
        async move {
            clock.sleep_until(due).await;
            frame
        }
    });
    late.buffered(LAGGING_MAX)
}

fn refusal(code: StatusCode) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let (reason, message) = match code {
        StatusCode::CONFLICT => {
            ("Conflict", "the object has been modified; please apply your changes to the latest version")
        }
        StatusCode::TOO_MANY_REQUESTS => ("TooManyRequests", "too many requests, please try again later"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let body = Full::new(Bytes::from(status_object(code, reason, message)));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

fn status_object(code: StatusCode, reason: &str, message: &str) -> String {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answering = tower::util::BoxCloneService<Request<Body>, Response<Full<Bytes>>, BoxError>;

    /// Answers every request, and counts those that were performed.
    fn counting() -> (Answering, Arc<Mutex<u32>>) {
        let count = Arc::new(Mutex::new(0));
        let counter = count.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            *counter.lock().unwrap() += 1;
            std::future::ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
        });
        (tower::util::BoxCloneService::new(service), count)
    }

    fn write() -> Request<Vec<u8>> {
        Request::patch("/api/v1/nodes/a").body(Vec::new()).unwrap()
    }

    fn simulated<F: Future>(work: impl FnOnce(Clock) -> F) -> F::Output {
        let runtime = soroi_clock::simulated_runtime().unwrap();
        runtime.block_on(async { work(Clock::simulated(jiff::Timestamp::UNIX_EPOCH)).await })
    }

    #[test]
    fn a_seed_gives_the_same_trouble_every_time() {
        let play = |seed| {
            simulated(async move |clock| {
                let wire = Wire::new(clock, Trouble::Seed(seed));
                let (service, _) = counting();
                let client = wire.client(service);
                for _ in 0..200 {
                    let _ = client.request::<serde_json::Value>(write()).await;
                }
                wire.log()
            })
        };
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
        for word in ["request lost", "409", "500", "ReplyLost"] {
            let found = (0..20).any(|seed| play(seed).iter().any(|line| line.contains(word)));
            assert!(found, "no seed gives {word}");
        }
    }

    /// What is seen of writes in a lull and in a storm, how many were answered, and how many performed.
    fn lull_and_storm(seed: u64) -> (Vec<What>, [u32; 2], u32) {
        simulated(async |clock| {
            let wire = Wire::new(clock, Trouble::Storm(seed));
            let seen: Arc<Mutex<Vec<What>>> = Arc::default();
            let eyes = seen.clone();
            wire.look_on(Arc::new(move |sight| eyes.lock().unwrap().push(sight.what.clone())));
            let (service, count) = counting();
            let client = wire.client(service);
            let send = async || {
                let mut answered = 0;
                for _ in 0..100 {
                    tokio::select! {
                        biased;
                        answer = client.request::<serde_json::Value>(write()) => answered += u32::from(answer.is_ok()),
                        () = wire.crash() => {}
                    }
                }
                answered
            };
            wire.set_lull(true);
            let calm = send().await;
            wire.set_lull(false);
            let rough = send().await;
            let seen = seen.lock().unwrap().clone();
            (seen, [calm, rough], *count.lock().unwrap())
        })
    }

    #[test]
    fn nothing_goes_wrong_in_a_lull_and_onlookers_see_what_takes_effect() {
        let mut met = Vec::new();
        for seed in 0..8 {
            let (seen, [calm, rough], performed) = lull_and_storm(seed);
            assert_eq!(calm, 100, "seed {seed}");
            let wrote = seen.iter().filter(|what| matches!(what, What::Wrote { .. })).count();
            assert_eq!(wrote, performed as usize, "seed {seed}");
            assert!(rough < 100 || !seen.contains(&What::Hindered), "seed {seed}");
            met.extend(seen);
        }
        assert!(met.contains(&What::Hindered) && met.contains(&What::Crashed));
    }

    #[test]
    fn a_crash_comes_after_its_write_took_effect() {
        simulated(async |clock| {
            let wire = Wire::new(clock, Trouble::CrashAfterWrite(3));
            let (service, count) = counting();
            let client = wire.client(service);
            let process = async {
                loop {
                    client.request::<serde_json::Value>(write()).await.unwrap();
                }
            };
            tokio::select! {
                biased;
                () = process => unreachable!("it writes for ever"),
                () = wire.crash() => {}
            }
            assert_eq!(*count.lock().unwrap(), 3);
            assert_eq!(wire.writes(), 3);
        });
    }
}
