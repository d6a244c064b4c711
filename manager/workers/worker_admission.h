#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "ipc/worker_messages.h"
#include "manager/launch/launcher.h"

namespace pando::manager {

/// Who may be the worker of a slot, and so get listening sockets, the slot's page and keys. Any
/// process of the workers' user reaches the socket that workers connect to: that it can say Hello
/// proves nothing. Decides only; what becomes of the process is the pool's business.
class WorkerAdmission {
 public:
  /// Who starts workers: this manager alone, or somebody else (`workers: external`).
  enum class Starter : std::uint8_t { kManager, kOther };

  /// What is known of a slot. A process here lives: its pidfd says so.
  struct Place {
    pid_t process = 0;   ///< that was started for the slot or is its worker already; 0 = none
    pid_t recorded = 0;  ///< that the slot's page names and that is a worker of it; 0 = none
  };

  /// `layout`: zone::layout_fingerprint(). `own_uid` and `worker_uid`: who may connect beside root.
  WorkerAdmission(Starter starter, std::uint64_t layout, std::uint32_t own_uid,
                  std::uint32_t worker_uid) noexcept;

  /// Whether a process of `uid` may connect at all.
  [[nodiscard]] bool may_connect(std::uint32_t uid) const noexcept;

  /// Decides on a Hello. `peer` is the process that opened the connection, as the kernel knows it;
  /// the pid in the Hello is ignored. Only the process in the slot, or recorded for the slot, is
  /// admitted. A slot without one admits a worker that was started externally.
  /// kInvalid: no such slot. kLayout: of another build. kNotFound: has ended. kExists: the slot has
  /// another process. kDenied: nobody is expected in the slot.
  [[nodiscard]] Status admit(const ipc::Hello& hello, const Child& peer, const Place& place) const;

  /// True: tell the refused process to exit, rather than to try again ten times a second. Its
  /// manager died before it recorded the process, which has no sockets yet.
  [[nodiscard]] bool is_surplus(const ipc::Hello& hello, const Error& refusal) const noexcept;

 private:
  Starter starter_;
  std::uint64_t layout_;
  std::uint32_t own_uid_;
  std::uint32_t worker_uid_;
};

}  // namespace pando::manager
