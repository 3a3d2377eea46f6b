# What the patch at /run/hallmark/patch makes of the commit in /testbed: `changed` lists its files as ls-tree does (NUL-terminated);
# each blob that the commit's history has nowhere is a file named by its id. A patch that does not apply changes nothing.
set -eu
# The suite's own tools: what an environment installs below /usr/local has no say here.
PATH=/usr/bin:/bin
cd /testbed
out=/run/hallmark/out
export GIT_INDEX_FILE=/tmp/gold.index
git read-tree HEAD
git apply --cached --whitespace=nowarn /run/hallmark/patch || { : > "$out/changed"; exit 0; }
git ls-tree -r -z "$(git write-tree)" > "$out/changed"
git diff-index --cached --raw -r --no-renames --no-abbrev HEAD | cut -d ' ' -f 2,4 | grep '^100' | cut -d ' ' -f 2 |
  sort -u > /tmp/made || true
git rev-list --objects HEAD | cut -d ' ' -f 1 | sort -u > /tmp/known
comm -23 /tmp/made /tmp/known | while read -r blob; do
  git cat-file blob "$blob" > "$out/$blob"
done
