#pragma once

#include <cstdint>

#include "base/result.h"

/// What a worker gives up before it reads its first packet: a hijacked one must not be able to look
/// at or change other processes, run programs or write files.
namespace pando::worker {

/// No core dumps or ptrace by the same user (they would show keys), no new privileges by exec.
Status forbid_inspection();

/// An allow-list of system calls; anything else ends the process. Does nothing in builds with
/// sanitizers (they need calls of their own), or when the environment has PANDO_SECCOMP=off, for
/// debuggers and valgrind. PANDO_SECCOMP=log lets calls pass and logs them (auditd).
Status filter_system_calls();

/// As many connections as the hard limit allows.
void raise_descriptor_limit() noexcept;

/// Runs on processor `cpu` only.
Status pin_to_processor(std::uint32_t cpu);

}  // namespace pando::worker
