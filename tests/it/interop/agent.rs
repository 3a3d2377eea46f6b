//! mini-swe-agent's Docker environment: the shell that agents work in.

use super::place::Place;
use crate::support::{Dockerd, INSTANCES, Venv};

/// Opens the image that the row names, looks around as agents do, applies the gold patch, and runs a test that it mends.
const SESSION: &str = r#"
import json
from minisweagent.environments.docker import DockerEnvironment

row = next(r for r in map(json.loads, open("rows.jsonl")) if r["instance_id"] == "ID")
box = DockerEnvironment(image=row["image_name"], cwd="/testbed", timeout=120)

def run(command, code=0):
    answer = box.execute({"command": command})
    assert answer["returncode"] == code, (command, answer)
    return answer["output"]

assert run("pwd && git rev-parse HEAD").split() == ["/testbed", row["base_commit"]]
assert run("git status --porcelain") == ""
test = " ".join(row["FAIL_TO_PASS"][:1])
heredoc = "git apply - <<'END_OF_PATCH'\n%s\nEND_OF_PATCH"
run(heredoc % row["test_patch"])
run("python -m pytest -p no:cacheprovider -q '%s'" % test, code=1)
run(heredoc % row["patch"])
run("python -m pytest -p no:cacheprovider -q '%s'" % test)
assert run("git diff --stat") != ""
box.cleanup()
print("well")
"#;

#[test]
fn an_agent_opens_an_image_and_applies_a_patch() {
    let Some(agent) = Venv::get("mini-swe-agent-2.4.6") else { return };
    let Some(docker) = Dockerd::shared() else { return };
    let Some(place) = Place::two() else { return };
    place.rows(&[]);
    place.load(docker, &[]);
    let output = agent
        .python()
        .args(["-c", &SESSION.replace("ID", INSTANCES[0])])
        .env("DOCKER_HOST", docker.host())
        .env("HOME", place.path())
        .env("MSWEA_SILENT_STARTUP", "1")
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // It logs to standard output, too.
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("well\n"));
}
