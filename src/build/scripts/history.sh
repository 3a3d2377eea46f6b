# Makes /testbed a checkout of $COMMIT from the pack at $PACK, which holds the commit's closure and nothing else.
set -eu
# The suite's own tools: what an environment installs below /usr/local has no say here.
PATH=/usr/bin:/bin
umask 022
mkdir -p /testbed
cd /testbed
git init -q --template= --initial-branch=main .
git config core.checkStat minimal
git config core.trustctime false
git config core.fileMode true
git config core.autocrlf false
git config gc.auto 0
git index-pack --stdin < "$PACK" > /dev/null
while read -r id name; do
  git update-ref "$name" "$id"
done < "$TAGS"
git update-ref --no-deref refs/heads/main "$COMMIT"
git reset -q --hard
# The pack's bytes depend on who packed it; this one depends on its objects alone.
git -c pack.threads=1 -c pack.writeReverseIndex=false -c repack.writeBitmaps=false repack -q -a -d -F
git prune-packed -q
git pack-refs --all
mkdir -p .git/info
rm -rf .git/logs .git/hooks .git/branches .git/COMMIT_EDITMSG .git/ORIG_HEAD .git/FETCH_HEAD .git/description
git log -1 --format=%ct
