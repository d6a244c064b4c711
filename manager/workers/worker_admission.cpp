#include "manager/workers/worker_admission.h"

#include "shm/slots.h"

namespace pando::manager {

WorkerAdmission::WorkerAdmission(Starter starter, std::uint64_t layout, std::uint32_t own_uid,
                                 std::uint32_t worker_uid) noexcept
    : starter_(starter), layout_(layout), own_uid_(own_uid), worker_uid_(worker_uid) {}

bool WorkerAdmission::may_connect(std::uint32_t uid) const noexcept {
  return uid == 0 || uid == own_uid_ || uid == worker_uid_;
}

Status WorkerAdmission::admit(const ipc::Hello& hello, const Child& peer,
                              const Place& place) const {
  if (hello.slot >= shm::kMaxSlots) return fail(Errc::kInvalid, "no slot {}", hello.slot);
  if (hello.layout != layout_)
    return fail(Errc::kLayout, "worker of another build: layout {:x}, not {:x}", hello.layout,
                layout_);
  // The pidfd is older than this message. While its process lives nobody else has that pid, so
  // equal pids below are one process; another that goes on with its connection is found out here.
  if (has_ended(peer.pidfd)) return fail(Errc::kNotFound, "process {} has ended", peer.pid);
  const pid_t expected = place.process != 0 ? place.process : place.recorded;
  if (expected == peer.pid) return {};
  if (expected != 0)
    return fail(Errc::kExists, "process {} is in slot {} already", expected, hello.slot);
  if (starter_ == Starter::kOther) return {};
  return fail(Errc::kDenied, "nobody started process {} for slot {}", peer.pid, hello.slot);
}

bool WorkerAdmission::is_surplus(const ipc::Hello& hello, const Error& refusal) const noexcept {
  return starter_ == Starter::kManager && hello.sockets == 0 &&
         (refusal.code == Errc::kExists || refusal.code == Errc::kDenied);
}

}  // namespace pando::manager
