//! The rounds: each kind has its turn in each of them, and does the same.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pointwork_tests::measure::quantile::of_sorted;

use crate::load::{
    calls::{Callers, Calls},
    connects,
    fanout::Audience,
    idle, policy_cost,
    users::User,
};
use crate::servers::cluster::{Each, Kind, Pair, Replica};
use crate::{
    figures::Figures,
    options::{Amounts, Options, What},
    redis::Redis,
};

/// Calls at once, where there is more than one.
pub(crate) const IN_FLIGHT: usize = 64;

/// Takes all turns.
pub(crate) async fn take(options: &Options, redis: &Redis, figures: &mut Figures) -> Result<()> {
    let amounts = options.amounts();
    for round in 1..=options.rounds {
        for kind in options.kinds() {
            let started = Instant::now();
            turn(options, &amounts, kind, redis, figures).await?;
            if options.has(What::Memory) {
                let users = User::some(amounts.idle)?;
                let growth = idle::grow(kind, redis, &users, !options.smoke).await?;
                figures.add(kind, "memory.rss", growth.rss_kib);
                figures.add(kind, "memory.anonymous", growth.anonymous_kib);
            }
            println!("round {round} of {}, {}: {:.0} s", options.rounds, kind.name(), started.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Everything that needs two replicas, once.
async fn turn(options: &Options, amounts: &Amounts, kind: Kind, redis: &Redis, figures: &mut Figures) -> Result<()> {
    let paired = [What::Cross, What::One, What::Same, What::Fanout, What::Connect];
    if !paired.into_iter().any(|what| options.has(what)) {
        return Ok(());
    }
    let pair = Pair::start(kind, redis).await?;
    if options.has(What::Cross) || options.has(What::One) {
        cross(options, amounts, &pair, figures).await?;
    }
    if options.has(What::Same) {
        let mut callers = warm(&pair.a, &pair.a, amounts).await?;
        let (calls, each) = measured(&pair, &mut callers, amounts.calls, IN_FLIGHT).await?;
        let keys = ["same.cpu", "same.redis", "same.load", "same.rate", "same.p50", "same.p99"];
        note(figures, kind, keys, &calls, each);
        callers.leave().await?;
    }
    if options.has(What::Fanout) {
        fanout(amounts, &pair, figures).await?;
    }
    if options.has(What::Connect) {
        connect(amounts, &pair, figures).await?;
    }
    Ok(())
}

async fn cross(options: &Options, amounts: &Amounts, pair: &Pair<'_>, figures: &mut Figures) -> Result<()> {
    let mut callers = warm(&pair.a, &pair.b, amounts).await?;
    if options.has(What::Cross) {
        let (calls, each) = measured(pair, &mut callers, amounts.calls, IN_FLIGHT).await?;
        let keys = ["cross.cpu", "cross.redis", "cross.load", "cross.rate", "cross.p50", "cross.p99"];
        note(figures, pair.kind, keys, &calls, each);
        if pair.kind == Kind::Pointwork {
            let share = policy_cost::mean_us(&pair.a).await? / each.servers_us;
            figures.add_share(100.0 * share);
        }
    }
    if options.has(What::One) {
        let (calls, each) = measured(pair, &mut callers, amounts.single_calls, 1).await?;
        figures.add(pair.kind, "one.p50", of_sorted(&calls.latencies_ms, 0.5));
        figures.add(pair.kind, "one.p99", of_sorted(&calls.latencies_ms, 0.99));
        figures.add(pair.kind, "one.cpu", each.servers_us);
    }
    callers.leave().await?;
    Ok(())
}

/// Callers that have made some calls.
async fn warm(callers: &Replica, daemons: &Replica, amounts: &Amounts) -> Result<Callers> {
    let mut callers = Callers::connect(callers, daemons, &User::some(IN_FLIGHT)?).await?;
    callers.call(amounts.warm_up, IN_FLIGHT).await?;
    Ok(callers)
}

async fn measured(pair: &Pair<'_>, callers: &mut Callers, count: usize, in_flight: usize) -> Result<(Calls, Each)> {
    pair.calm().await;
    let before = pair.used()?;
    let calls = callers.call(count, in_flight).await?;
    let each = pair.used()?.each_us(&before, calls.count);
    Ok((calls, each))
}

fn note(figures: &mut Figures, kind: Kind, keys: [&'static str; 6], calls: &Calls, each: Each) {
    let values = [
        each.servers_us,
        each.redis_us,
        each.load_us,
        calls.count as f64 / calls.elapsed_s,
        of_sorted(&calls.latencies_ms, 0.5),
        of_sorted(&calls.latencies_ms, 0.99),
    ];
    for (key, value) in keys.into_iter().zip(values) {
        figures.add(kind, key, value);
    }
}

async fn fanout(amounts: &Amounts, pair: &Pair<'_>, figures: &mut Figures) -> Result<()> {
    let audience = Audience::connect(pair, amounts.audience).await?;
    audience.hear(pair, amounts.events / 4).await?;
    pair.calm().await;
    let before = pair.used()?;
    let deliveries = audience.hear(pair, amounts.events).await?;
    let used = pair.used()?;
    let each = used.each_us(&before, deliveries);
    figures.add(pair.kind, "fanout.cpu", each.servers_us);
    figures.add(pair.kind, "fanout.rate", 1e6 / each.servers_us);
    figures.add(pair.kind, "fanout.redis", used.each_us(&before, amounts.events).redis_us);
    audience.leave().await?;
    pair.calm().await;
    Ok(())
}

async fn connect(amounts: &Amounts, pair: &Pair<'_>, figures: &mut Figures) -> Result<()> {
    let replicas = [&pair.a, &pair.b];
    let users = User::some(amounts.connects)?;
    let (warming, _) = users.split_at(users.len() / 4);
    drop(connects::connect(&replicas, warming).await?);
    pair.calm().await;
    let before = pair.used()?;
    let started = Instant::now();
    let connected = connects::connect(&replicas, &users).await?;
    let rate = connected.len() as f64 / started.elapsed().as_secs_f64();
    // What a server does of a connect after it has answered is a part of it.
    pair.calm().await;
    let each = pair.used()?.each_us(&before, connected.len());
    figures.add(pair.kind, "connect.cpu", each.servers_us);
    figures.add(pair.kind, "connect.load", each.load_us);
    figures.add(pair.kind, "connect.rate", rate);
    Ok(())
}

/// Keeps two replicas under one load for so long, and says who they are.
pub(crate) async fn hold(options: &Options, redis: &Redis, seconds: u64) -> Result<()> {
    let what = options.first().context("--hold needs --only cross, same, one, fanout or connect")?;
    let amounts = options.amounts();
    let kind = options.kinds().last().copied().unwrap_or(Kind::Pointwork);
    let pair = Pair::start(kind, redis).await?;
    let mut load = Load::begin(what, &pair, &amounts).await?;
    println!("{}: replicas {} and {}, redis {}", kind.name(), pair.a.pid(), pair.b.pid(), redis.pid());
    println!("under load for {seconds} s");
    let (before, started) = (pair.used()?, Instant::now());
    let mut count = 0;
    while started.elapsed() < Duration::from_secs(seconds) {
        count += load.more(&pair, &amounts).await?;
    }
    let (each, elapsed_s) = (pair.used()?.each_us(&before, count), started.elapsed().as_secs_f64());
    println!("{count} in {elapsed_s:.1} s, {:.0} a second; CPU of each: {each:?}", count as f64 / elapsed_s);
    Ok(())
}

/// What goes on for as long as one likes.
enum Load {
    Calls(Callers, usize),
    Fanout(Audience),
    Connects(Vec<User>),
}

impl Load {
    async fn begin(what: What, pair: &Pair<'_>, amounts: &Amounts) -> Result<Self> {
        Ok(match what {
            What::Cross => Self::Calls(warm(&pair.a, &pair.b, amounts).await?, IN_FLIGHT),
            What::Same => Self::Calls(warm(&pair.a, &pair.a, amounts).await?, IN_FLIGHT),
            What::One => Self::Calls(warm(&pair.a, &pair.b, amounts).await?, 1),
            What::Fanout => Self::Fanout(Audience::connect(pair, amounts.audience).await?),
            What::Connect => Self::Connects(User::some(amounts.connects)?),
            other => bail!("{other:?} is no load that can be held"),
        })
    }

    /// About a second of it; how much it was.
    async fn more(&mut self, pair: &Pair<'_>, amounts: &Amounts) -> Result<usize> {
        Ok(match self {
            Self::Calls(callers, 1) => callers.call(amounts.single_calls, 1).await?.count,
            Self::Calls(callers, in_flight) => callers.call(amounts.calls, *in_flight).await?.count,
            Self::Fanout(audience) => audience.hear(pair, amounts.events).await?,
            Self::Connects(users) => connects::connect(&[&pair.a, &pair.b], users).await?.len(),
        })
    }
}
