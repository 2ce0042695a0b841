//! Devices that register, each in a task of its own, and keep their sessions until they are told to leave.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::device::Device;

/// How long it may take until all are registered: the machine is busy with thousands of handshakes.
const ARRIVE_WITHIN: Duration = Duration::from_secs(180);
const LEAVE_WITHIN: Duration = Duration::from_secs(60);

/// How fast they come.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// As fast as they get in, with so many that connect or register at once.
    AtMost(usize),
    /// Evenly over this span, however many are on their way.
    Over(Duration),
}

/// How they came.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// How long each took that is registered, from its TCP connection on.
    pub(crate) took: Vec<Duration>,
    /// From the first that set out until the last was registered.
    pub(crate) last: Duration,
    /// Why the others are not.
    pub(crate) failures: Vec<String>,
}

/// Devices that have their sessions. Dropped, they end without a word.
pub(crate) struct Fleet {
    lives: JoinSet<Result<()>>,
    leave: watch::Sender<bool>,
}

/// One device's, from its first byte to its last.
struct Life {
    device: Device,
    url: Arc<str>,
    /// When it sets out, from now.
    delay: Duration,
    connecting: Arc<Semaphore>,
    leave: watch::Receiver<bool>,
    /// How long it took until it was registered, or why it is not.
    arrived: mpsc::Sender<Result<Duration>>,
}

impl Fleet {
    /// Has them register at the endpoint `url`; gives them when each is registered or has failed, or has taken too long.
    pub(crate) async fn bring(url: &str, devices: &[Device], pace: Pace) -> (Self, Arrivals) {
        let (leave, leaving) = watch::channel(false);
        let (arrived, mut arriving) = mpsc::channel(devices.len().max(1));
        let connecting = match pace {
            Pace::AtMost(number) => number,
            Pace::Over(_) => devices.len(),
        };
        let connecting = Arc::new(Semaphore::new(connecting));
        let url: Arc<str> = url.into();
        let mut lives = JoinSet::new();
        let began = Instant::now();
        for (device, index) in devices.iter().zip(0..) {
            let life = Life {
                device: device.clone(),
                url: url.clone(),
                delay: pace.delay(index, devices.len()),
                connecting: connecting.clone(),
                leave: leaving.clone(),
                arrived: arrived.clone(),
            };
            lives.spawn(life.live());
        }
        let mut arrivals = Arrivals::default();
        for outstanding in (1..=devices.len()).rev() {
            match timeout_at(began + ARRIVE_WITHIN, arriving.recv()).await {
                Ok(Some(Ok(took))) => {
                    arrivals.took.push(took);
                    arrivals.last = began.elapsed();
                }
                Ok(Some(Err(error))) => arrivals.failures.push(format!("{error:#}")),
                Ok(None) | Err(_) => {
                    arrivals.failures.push(format!("{outstanding} were not registered in time"));
                    break;
                }
            }
        }
        (Self { lives, leave }, arrivals)
    }

    /// Why some have lost their sessions that nobody told to leave.
    pub(crate) fn lost(&mut self) -> Vec<String> {
        let mut lost = Vec::new();
        while let Some(ended) = self.lives.try_join_next() {
            lost.extend(failure(ended));
        }
        lost
    }

    /// Has them leave; gives why some could not.
    pub(crate) async fn leave(mut self) -> Vec<String> {
        self.leave.send_replace(true);
        let mut failures = Vec::new();
        let ended = async {
            while let Some(ended) = self.lives.join_next().await {
                failures.extend(failure(ended));
            }
        };
        if timeout(LEAVE_WITHIN, ended).await.is_err() {
            failures.push(format!("{} did not leave in time", self.lives.len()));
        }
        failures
    }
}

impl Pace {
    /// When one of so many sets out.
    fn delay(self, index: u32, number: usize) -> Duration {
        match self {
            Self::AtMost(_) => Duration::ZERO,
            Self::Over(span) => span.saturating_mul(index) / u32::try_from(number.max(1)).unwrap_or(u32::MAX),
        }
    }
}

impl Life {
    /// An error when it lost its session.
    async fn live(mut self) -> Result<()> {
        sleep(self.delay).await;
        let permit = self.connecting.acquire().await?;
        let began = Instant::now();
        let registered = self.device.register(&self.url).await;
        drop(permit);
        let mut client = match registered {
            Ok(client) => client,
            Err(error) => return Ok(self.arrived.send(Err(error)).await?),
        };
        self.arrived.send(Ok(began.elapsed())).await?;
        loop {
            tokio::select! {
                stayed = self.device.stay(&mut client) => stayed?,
                _ = self.leave.wait_for(|leave| *leave) => break,
            }
        }
        client.leave().await
    }
}

fn failure(ended: Result<Result<()>, tokio::task::JoinError>) -> Option<String> {
    match ended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(error) => Some(error.to_string()),
    }
}
