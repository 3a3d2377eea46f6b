//! `/testbed`: a work tree with the base commit's history and nothing else.

use std::path::Path;

use super::distribution::EPOCH;
use super::history::{FROM_HISTORY, from_history};
use super::inside::file_inside;
use super::metadata::{GENERATED_PATTERNS, LEFTOVER_PATTERNS};
use super::step::cached_layer;
use super::{Error, command, git_index, offline};
use crate::bundle::{self, history::History};
use crate::dataset::{Instance, Pair, Source};
use crate::image::{self, Image, PackRules};
use crate::runtime::{Root, Workbench};

const STEP: &str = "repository/1";
const FROM_TREE: &str = include_str!("scripts/repository.sh");

/// The env image with `/testbed` on top, nothing installed yet.
///
/// A history is laid in the base image, whose git does it: it takes long for a large one, and all environments on that base
/// share what comes out.
pub(crate) fn repository(
    bench: Workbench<'_>,
    base: &Image,
    env: &Image,
    instance: &Instance,
    history: Option<&History>,
) -> Result<Image, Error> {
    let inputs = match &instance.source {
        Source::Pair(pair) => serde_json::json!({
            "step": STEP,
            "env": env.key,
            "source": {
                "sdist": pair.base.sha256, "script": FROM_TREE, "message": message(pair),
                "excluded": [GENERATED_PATTERNS, LEFTOVER_PATTERNS],
            },
        }),
        Source::Git { base_commit, .. } => {
            // The commit names its closure; which tags lead into it, only the repository knows.
            let tags = history.map(|history| &history.tags);
            serde_json::json!({
                "step": STEP,
                "base": base.key,
                "source": { "commit": base_commit, "tags": tags, "script": FROM_HISTORY },
            })
        }
    };
    let layer =
        cached_layer(bench, "repository", instance.id.as_str(), &inputs, |_| {
            match &instance.source {
                Source::Pair(pair) => from_sdist(bench, env, instance, pair),
                Source::Git { base_commit, .. } => {
                    let history = history.ok_or_else(|| Error::Invalid {
                        what: instance.id.to_string(),
                        problem: format!("the history of {base_commit} is not in the bundle"),
                        hint: Some("name a folder of mirrors with --mirrors".into()),
                    })?;
                    from_history(bench, base, instance.id.as_str(), base_commit, history)
                }
            }
        })?;
    Ok(env.with_layer(layer, &inputs)?)
}

fn message(pair: &Pair) -> String {
    format!("{} {}\n", pair.package, pair.base.version)
}

fn from_sdist(
    bench: Workbench<'_>,
    env: &Image,
    instance: &Instance,
    pair: &Pair,
) -> Result<image::Layer, Error> {
    let scratch = bench.store.scratch_dir("repository")?;
    let folder = scratch.path();
    let tree = bundle::sdist::extract(
        bench.store,
        &pair.base.sha256,
        &pair.base.file,
        &folder.join("sdist"),
    )?;
    let date = newest_file(&tree)?;
    let input = folder.join("input");
    fs_err::create_dir(&input)?;
    fs_err::create_dir(folder.join("logs"))?;
    fs_err::write(input.join("exclude"), GENERATED_PATTERNS)?;
    fs_err::write(input.join("message"), message(pair))?;
    let mut spec = offline::shell(FROM_TREE, date, &folder.join("logs"));
    spec.env.extend(commit_identity(date));
    offline::with(
        &mut spec,
        [
            ("SOURCE", "/run/hallmark/source"),
            ("EXCLUDE", "/run/hallmark/input/exclude"),
            ("MESSAGE", "/run/hallmark/input/message"),
        ],
    );
    spec.mounts = vec![offline::input(&tree, "source"), offline::input(&input, "input")];
    let step = format!("repository of {}", instance.id);
    let log = command::run(bench, &step, Root::Layers(&env.layers), &spec)?;
    let upper = log.upper.expect("asked for");
    let exclude = file_inside(&upper, "testbed/.git/info/exclude")?;
    fs_err::write(exclude, format!("{GENERATED_PATTERNS}{LEFTOVER_PATTERNS}"))?;
    settle(bench, upper, date)
}

/// Makes the finished work tree in `upper` a layer dated `date`.
pub(crate) fn settle(
    bench: Workbench<'_>,
    upper: std::path::PathBuf,
    date: i64,
) -> Result<image::Layer, Error> {
    keep_only_testbed(&upper)?;
    git_index::normalise(&upper, "testbed", date)?;
    Ok(image::commit_tree(bench.store, upper, &testbed_rules(date), bench.cancel)?)
}

/// How layers with `/testbed` are packed: its files carry the commit's date, and the index one second later.
pub(crate) fn testbed_rules(date: i64) -> PackRules {
    PackRules::root(EPOCH).with_time("testbed", date).with_time("testbed/.git/index", date + 1)
}

/// Removes what the script left elsewhere: mount points and temporary files.
fn keep_only_testbed(upper: &Path) -> Result<(), Error> {
    for entry in fs_err::read_dir(upper)? {
        let entry = entry?;
        if entry.file_name() != "testbed" {
            image::remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

/// Who commits: nobody in particular, at a fixed time.
pub(crate) fn commit_identity(date: i64) -> impl Iterator<Item = (String, String)> {
    ["AUTHOR", "COMMITTER"].into_iter().flat_map(move |role| {
        [
            (format!("GIT_{role}_NAME"), "hallmark".to_owned()),
            (format!("GIT_{role}_EMAIL"), "hallmark@localhost".to_owned()),
            (format!("GIT_{role}_DATE"), format!("@{date} +0000")),
        ]
    })
}

/// The date of a pair's commit: that of the newest file of its base sdist, at least [`EPOCH`].
fn newest_file(tree: &Path) -> Result<i64, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let mut newest = EPOCH;
    for entry in walkdir::WalkDir::new(tree) {
        let entry = entry.map_err(std::io::Error::from)?;
        if entry.file_type().is_file() {
            newest = newest.max(entry.metadata().map_err(std::io::Error::from)?.mtime());
        }
    }
    Ok(newest)
}
