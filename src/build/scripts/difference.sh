# Writes the difference of the trees at $BASE and $FIXED to $OUT/patch, as git reads it, and the blob ids of both
# sides to $OUT/base and $OUT/fixed (`mode type id<TAB>path`, NUL-terminated).
set -eu
# The suite's own tools: what an environment installs below /usr/local has no say here.
PATH=/usr/bin:/bin
export GIT_DIR=/tmp/pair.git
git init -q --bare --template= "$GIT_DIR"
mkdir -p "$GIT_DIR/info"
echo '* -text -filter -ident -working-tree-encoding' > "$GIT_DIR/info/attributes"
tree() {
  rm -f "$GIT_DIR/index"
  (cd "$1" && git --work-tree=. -c core.bare=false -c core.autocrlf=false ls-files -z --others |
    git --work-tree=. -c core.bare=false -c core.autocrlf=false update-index -z --add --stdin)
  git write-tree
}
base=$(tree "$BASE")
fixed=$(tree "$FIXED")
git diff-tree -r -p --binary --full-index --no-renames --no-color --no-ext-diff --no-textconv \
  --src-prefix=a/ --dst-prefix=b/ "$base" "$fixed" > "$OUT/patch"
git ls-tree -r -z "$base" > "$OUT/base"
git ls-tree -r -z "$fixed" > "$OUT/fixed"
