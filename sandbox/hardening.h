#pragma once

#include <cstdint>

#include "base/result.h"

/// Rights that a process which reads strangers' octets gives up before the first one: a worker, and
/// pando-tls. Once hijacked, it must not inspect or change other processes, run programs or write
/// files.
namespace pando::sandbox {

/// Forbids core dumps and ptrace by the same user, which would expose keys, and new privileges by
/// exec.
Status forbid_inspection();

/// Forbids by Landlock, where the kernel has it, to open any file, to bind or connect over TCP, and
/// to signal other processes. No file that the process can write may grow beyond `max_file_bytes`;
/// that limit is left out when the log goes to a file. After forbid_inspection().
Status forbid_files(std::uint64_t max_file_bytes);

/// Whether the process makes pairs of stream sockets. Each pair is connected, so that it reaches
/// nobody to whom the process does not pass an end.
enum class SocketPairs : std::uint8_t { kForbidden, kAllowed };

/// Installs an allow-list of system calls; any other call ends the process. PANDO_SECCOMP=log lets
/// calls pass and logs them (auditd).
/// The filter is skipped in builds with sanitizers, which need calls of their own.
/// PANDO_SECCOMP=off skips it for debuggers and valgrind.
Status filter_system_calls(SocketPairs pairs);

/// Limits the process's own memory to a quarter of the machine's, or 512 MiB if that is more. A
/// worker needs some MiB. Under systemd the kernel spares them when memory runs out, so that a
/// hijacked one would have all other processes ended. Builds with sanitizers have no limit.
Status limit_memory();

/// Raises the limit of open descriptors to the hard limit, which bounds the number of connections.
void raise_descriptor_limit() noexcept;

/// Makes the process run on processor `cpu` only.
Status pin_to_processor(std::uint32_t cpu);

}  // namespace pando::sandbox
