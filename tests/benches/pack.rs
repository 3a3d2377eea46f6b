//! How fast a tree becomes a layer: hallmark against a shell pipeline of the usual tools, in the same run.
//!
//! `cargo bench --bench pack` makes a seeded tree of 20,000 files and 400 MB, packs it by turns with both and prints
//! the fastest rounds and medians, their ratios and hallmark's peak memory. On a busy machine the fastest rounds say more. Hallmark's side is all of `commit_tree`: the walk, the archive, both
//! digests, zstd level 3, and what the pipeline does not do, bringing the tree itself into normal form.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hallmark::base::clock::Stopwatch;
use hallmark::base::{Cancel, Store};
use hallmark::image::{PackRules, commit_tree};

const FILES: usize = 20_000;
const BYTES: usize = 400_000_000;
const FOLDERS: usize = 500;
const ROUNDS: usize = 7;

/// xorshift64: the same tree everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// Sizes as in an installed environment: most files are small, a few are large. Four fifths of the bytes are text of
/// a thousand words, the rest is noise, as compiled code nearly is.
fn make_tree(root: &Path) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let words: Vec<Vec<u8>> = (0..1000)
        .map(|_| {
            let length = 2 + random.below(10);
            (0..length).map(|_| b'a' + u8::try_from(random.below(26)).unwrap()).collect()
        })
        .collect();
    let weights: Vec<usize> = (0..FILES)
        .map(|_| match random.below(100) {
            0..70 => 1 + random.below(10),
            70..97 => 10 + random.below(60),
            _ => 100 + random.below(1000),
        })
        .collect();
    let total: usize = weights.iter().sum();
    for folder in 0..FOLDERS {
        fs_err::create_dir_all(root.join(format!("lib/p{}/m{folder}", folder % 50))).unwrap();
    }
    for (index, weight) in weights.iter().enumerate() {
        let size = BYTES / total * weight + BYTES % total * weight / total;
        let mut content = Vec::with_capacity(size + 16);
        let noise = random.below(5) == 0;
        while content.len() < size {
            if noise {
                content.extend_from_slice(&random.next().to_le_bytes());
            } else {
                content.extend_from_slice(&words[random.below(words.len())]);
                content.push(if random.below(8) == 0 { b'\n' } else { b' ' });
            }
        }
        content.truncate(size);
        let folder = index % FOLDERS;
        let path = root.join(format!("lib/p{}/m{folder}/file_{index}.py", folder % 50));
        fs_err::File::create(path).unwrap().write_all(&content).unwrap();
    }
}

fn touch(root: &Path) {
    let output = Command::new("find").arg(root).args(["-exec", "touch", "-h", "{}", "+"]).status();
    assert!(output.unwrap().success());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A line of this process's status, in KiB.
fn peak_memory() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
    let tree = folder.path().join("scratch/tree");
    make_tree(&tree);
    // Start the peak anew: making the tree is not part of it.
    fs_err::write("/proc/self/clear_refs", "5").unwrap();
    let script = "tar --sort=name --xattrs -C \"$1\" -c . | tee >(sha256sum > \"$2.diff\") \
                  | zstd -3 -T2 -q | tee \"$2\" | sha256sum > \"$2.blob\"";
    let out = folder.path().join("reference");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut sizes = (0, 0);
    for round in 0..ROUNDS {
        touch(&tree);
        let watch = Stopwatch::start();
        let status = Command::new("bash")
            .args(["-o", "pipefail", "-c", script, "bash"])
            .args([&tree, &out])
            .status()
            .unwrap();
        assert!(status.success());
        theirs.push(watch.elapsed());
        let watch = Stopwatch::start();
        let rules = PackRules::root(315_532_800);
        let layer = commit_tree(&store, tree.clone(), &rules, &Cancel::new()).unwrap();
        ours.push(watch.elapsed());
        let blob = hallmark::image::compress(
            &store,
            &layer,
            hallmark::image::Compressor::default(),
            &Cancel::new(),
        )
        .unwrap();
        sizes = (blob.size, fs_err::metadata(&out).unwrap().len());
        fs_err::rename(store.layer_path(&layer.diff_id), &tree).unwrap();
        println!(
            "round {round}: hallmark {:.3} s, pipeline {:.3} s",
            ours[round].as_secs_f64(),
            theirs[round].as_secs_f64()
        );
    }
    let fastest = |times: &[Duration]| times.iter().min().unwrap().as_secs_f64();
    let (our_best, their_best) = (fastest(&ours), fastest(&theirs));
    let (ours, theirs) = (median(ours).as_secs_f64(), median(theirs).as_secs_f64());
    println!("hallmark  {our_best:.3} s, median {ours:.3} s of {ROUNDS}, {} bytes", sizes.0);
    println!("pipeline  {their_best:.3} s, median {theirs:.3} s of {ROUNDS}, {} bytes", sizes.1);
    println!(
        "ratio     {:.2}, of medians {:.2} (target: at most 1.10)",
        our_best / their_best,
        ours / theirs
    );
    println!("peak      {} MiB (target: at most 128)", peak_memory() >> 10);
}
