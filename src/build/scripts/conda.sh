# Sourced, as conda's own file of this name would be. Works under `set -eu`.
# There is no conda here: activating an environment puts its folder of programs first in PATH, and that is all.

conda() {
  case "${1-}" in
    activate)
      case "${2-base}" in
        base | /opt/miniconda3) set -- base /opt/miniconda3 ;;
        testbed | /opt/miniconda3/envs/testbed) set -- testbed /opt/miniconda3/envs/testbed ;;
        *)
          echo "EnvironmentNameNotFound: Could not find conda environment: $2" >&2
          echo "this image has one environment: testbed" >&2
          return 1
          ;;
      esac
      conda deactivate
      export CONDA_DEFAULT_ENV="$1" CONDA_PREFIX="$2" CONDA_SHLVL=1 PATH="$2/bin:$PATH"
      ;;
    deactivate)
      case ":$PATH:" in
        *":${CONDA_PREFIX:-none}/bin:"*)
          PATH=":$PATH:"
          PATH="${PATH%%":$CONDA_PREFIX/bin:"*}:${PATH#*":$CONDA_PREFIX/bin:"}"
          PATH="${PATH#:}"
          PATH="${PATH%:}"
          ;;
      esac
      unset CONDA_DEFAULT_ENV CONDA_PREFIX CONDA_SHLVL
      ;;
    *)
      /opt/miniconda3/bin/conda "$@"
      ;;
  esac
}
