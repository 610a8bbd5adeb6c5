# Source this file (bash or zsh, from any folder): `source env.sh`.
# Gives a shell with the virtual environment, ROS 2, the built workspace and the commands of this project.
# What you have set yourself stays: ROS_DOMAIN_ID, RMW_IMPLEMENTATION, ROS_AUTOMATIC_DISCOVERY_RANGE, ...

_equi_env() {
    local root="$1" shell_name="$2" ros_prefix
    if [ ! -f "$root/.venv/.setup/identity.json" ]; then
        echo "env.sh: nothing is installed in $root yet. Run \`make -C $root setup\`, then source this file again." >&2
        return 1
    fi
    if [ ! -f "$root/ros2_ws/install/local_setup.$shell_name" ]; then
        echo "env.sh: the workspace is not built yet. Run \`make -C $root setup\`, then source this file again." >&2
        return 1
    fi

    # Set up upon a real ROS 2: bring it in, unless it is sourced already.
    ros_prefix=$(sed -n 's/^ *"ros_prefix": "\(.*\)",*$/\1/p' "$root/.venv/.setup/identity.json")
    if [ -n "$ros_prefix" ] && [ "${ROS_DISTRO:-}" != jazzy ]; then
        . "$ros_prefix/setup.$shell_name" || return 1
    fi

    export VIRTUAL_ENV="$root/.venv"
    unset PYTHONHOME
    # The ROS wheels put their libraries on LD_LIBRARY_PATH once per process tree; this one starts afresh.
    unset _ROS_WHEELS_BOOTSTRAP_COMPLETE
    case ":$PATH:" in
        *":$VIRTUAL_ENV/bin:"*) ;;
        *) export PATH="$VIRTUAL_ENV/bin:$PATH" ;;
    esac
    if [ -z "$ros_prefix" ]; then
        export ROS_VERSION=2 ROS_PYTHON_VERSION=3 ROS_DISTRO=jazzy
        case ":${AMENT_PREFIX_PATH:-}:" in
            *":$VIRTUAL_ENV:"*) ;;
            *) export AMENT_PREFIX_PATH="$VIRTUAL_ENV${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}" ;;
        esac
        case ":${CMAKE_PREFIX_PATH:-}:" in
            *":$VIRTUAL_ENV:"*) ;;
            *) export CMAKE_PREFIX_PATH="$VIRTUAL_ENV${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}" ;;
        esac
    else
        export PYTHONNOUSERSITE=1
    fi

    # The workspace goes on top. Its scripts are colcon's and do not bear `set -u`.
    export COLCON_PYTHON_EXECUTABLE="$VIRTUAL_ENV/bin/python"
    local nounset=''
    case $- in *u*) nounset=yes; set +u ;; esac
    . "$root/ros2_ws/install/local_setup.$shell_name"
    [ -n "$nounset" ] && set -u

    # Robot traffic stays on this machine unless you decide otherwise.
    export ROS_AUTOMATIC_DISCOVERY_RANGE="${ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}"
    export RMW_IMPLEMENTATION="${RMW_IMPLEMENTATION:-rmw_fastrtps_cpp}"
    # Large messages (point clouds) need more shared memory than Fast DDS takes by itself.
    if [ -z "${FASTRTPS_DEFAULT_PROFILES_FILE:-}" ] && [ -f "$root/launch/config/fastdds.xml" ]; then
        export FASTRTPS_DEFAULT_PROFILES_FILE="$root/launch/config/fastdds.xml"
    fi
    return 0
}

if [ -n "${ZSH_VERSION:-}" ]; then
    eval '_equi_env "${${(%):-%x}:A:h}" zsh'
elif [ -n "${BASH_VERSION:-}" ]; then
    _equi_env "$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)" bash
else
    echo "env.sh: use bash or zsh." >&2
    false
fi
