//! Packing needs little memory, however much is packed.

use std::io::Write as _;

use super::support::{Shop, skip};
use hallmark::image::PackRules;

/// What packing may take at its peak, in KiB.
const MOST: u64 = 128 << 10;

#[test]
fn packing_400_megabytes_takes_at_most_128_mebibytes() {
    if !cfg!(target_os = "linux") {
        skip("packing_400_megabytes_takes_at_most_128_mebibytes", "reads /proc");
        return;
    }
    // The peak is a process's own, so the work is done in one that does nothing else.
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "image::memory::packs_400_megabytes", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let peak = text.split("peak ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(peak.parse::<u64>().unwrap() <= MOST, "{peak} KiB");
}

#[test]
#[ignore = "measured by the test above, in a process of its own"]
fn packs_400_megabytes() {
    let shop = Shop::new();
    let tree = shop.tree();
    let mut state = 88_172_645_463_325_252_u64;
    for index in 0..20 {
        let mut file =
            std::io::BufWriter::new(fs_err::File::create(tree.join(index.to_string())).unwrap());
        // Half noise, half runs, so that the compressor works and writes.
        for _ in 0..1_250_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            file.write_all(&state.to_le_bytes()).unwrap();
            file.write_all(b"unittest").unwrap();
        }
        file.flush().unwrap();
    }
    let layer = shop.commit(tree, &PackRules::root(1));
    assert!(layer.size > 400_000_000);
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let peak = line.split_whitespace().nth(1).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "peak {peak} KiB").unwrap();
}
