# Makes /testbed a work tree with one deterministic commit of the tree at $SOURCE.
#
# Generated metadata ($EXCLUDE: one pattern a line) stays in the work tree, untracked and excluded: build backends read it,
# patches never touch it. Attributes that would convert contents are switched off, so blobs are the files' bytes.
set -eu
# The suite's own tools: what an environment installs below /usr/local has no say here.
PATH=/usr/bin:/bin
umask 022
mkdir -p /testbed
cp -R "$SOURCE/." /testbed/
cd /testbed
if [ -e .git ]; then
  echo "the source holds a .git" >&2
  exit 1
fi
git init -q --template= --initial-branch=main .
git config core.checkStat minimal
git config core.trustctime false
git config core.fileMode true
git config core.autocrlf false
git config gc.auto 0
mkdir -p .git/info
cp "$EXCLUDE" .git/info/exclude
echo '* -text -filter -ident -working-tree-encoding' > .git/info/attributes
# Force: a project's own .gitignore must not hide files that its release ships.
git -c core.excludesFile=/dev/null ls-files -z --others --exclude-from=.git/info/exclude |
  git -c core.excludesFile=/dev/null update-index -z --add --stdin
git commit -q --no-verify -F "$MESSAGE"
git -c pack.threads=1 -c pack.writeReverseIndex=false -c repack.writeBitmaps=false repack -q -a -d -F
git prune-packed -q
git pack-refs --all
rm -rf .git/logs .git/hooks .git/branches .git/COMMIT_EDITMSG .git/ORIG_HEAD .git/FETCH_HEAD .git/description
git rev-parse HEAD
