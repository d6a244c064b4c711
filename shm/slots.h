#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "shm/counts/count_rows.h"
#include "shm/map/ref.h"

namespace pando::shm {

inline constexpr std::uint32_t kMaxSlots = 1024;
inline constexpr std::size_t kLeasesPerSlot = 64;
inline constexpr std::size_t kCountersPerSlot = 448;

/// A worker's transfers of one zone, by ipc::ZoneTransfer.
using TransferRow = CountRow<4>;
/// Zones whose transfers a worker counts apart; 40 KiB.
inline constexpr std::size_t kTransferRows = 1024;

/// One transfer's hold on a version. `epoch` is written by the worker, `revoke` by the manager.
struct Lease {
  std::atomic<std::uint64_t> epoch;   // number of the one version that the lease holds; 0 = unused
  std::atomic<std::uint64_t> since;   // seconds, coarse monotonic
  std::atomic<std::uint32_t> revoke;  // != 0: give the lease up at the next message border
  std::uint32_t unused;
};

/// A worker's own file of shared memory: the only thing it may write. Layout is part of the
/// fingerprint. By the order of fields the pin is alone on its cache line.
struct SlotPage {
  std::uint64_t magic;
  std::uint64_t layout;
  std::uint32_t slot;
  std::uint32_t pid;                             // of the worker; written when it is started
  /// Start time of the worker, seconds since 1970. 0: the slot had no worker yet, or the last one
  /// was ordered to stop. A slot with a time here and without a process misses its worker.
  std::uint64_t started;
  alignas(64) std::atomic<std::uint64_t> epoch;  // 0 = idle; the pin of the current batch
  alignas(64) std::array<Lease, kLeasesPerSlot> leases;
  alignas(
      64) std::array<std::atomic<std::uint64_t>, kCountersPerSlot> counters;  // ipc/counters.h
  alignas(64) std::array<TransferRow, kTransferRows> transfers;  // shm/counts/count_rows.h
};

/// Memory after the page in the same file, for the worker alone. The worker's successor in the
/// slot finds the memory unchanged, so requests that a process took from a socket survive its
/// death.
inline constexpr std::size_t kScratchBytes = std::size_t{272} << 10;

/// Bytes of a slot's file.
extern const std::uint64_t kSlotFileSize;

/// Open files of the store (readable) and of a slot's file, for one worker.
struct SlotLoan {
  Fd store;
  Fd slot;
};

/// The file of slot `number`.
[[nodiscard]] std::string slot_path(const std::string& directory, std::uint32_t number);
/// Numbers of the slot files in the directory, in no order. kDenied, kNotFound, kIo.
Result<std::vector<std::uint32_t>> slot_numbers(const std::string& directory);

/// The manager's side: creates and maps slot files, and collects the readers' pins. The files have
/// the mode 0600, in a directory that only the manager may enter. share_with() opens them to a
/// group of readers. A slot counts as alive while the OFD read lock of a loan is held on the
/// store's inode (offset kSlotLockBase + slot). The kernel drops the lock however the worker dies.
/// Thread-safe, but add(), replace() and remove() invalidate page() of that number.
class SlotTable {
 public:
  /// Slot files found in the directory are taken over: their workers may be alive.
  static Result<SlotTable> open(const std::string& directory, const std::string& store_path,
                                std::uint64_t layout);
  SlotTable(SlotTable&&) noexcept;
  SlotTable& operator=(SlotTable&&) noexcept;
  ~SlotTable();

  /// Lets the members of `group` read the store and all slots, also later ones
  /// (shm/inspect/slot_pages.h). Until the next open(), or a failure, which closes the slots again.
  Status share_with(std::uint32_t group, const std::string& store_path);
  /// Makes or reopens slot `number`; its contents stay (a living worker may use it).
  Result<SlotPage*> add(std::uint32_t number);
  /// Opens store and slot file anew for the worker of a slot, and takes the locks that the worker
  /// is known by. The locks belong to these open files: they live as long as the process that gets
  /// the descriptors. That process needs no right to open or lock anything. `attached`: the
  /// process has an earlier loan, whose lock stays. kExists: another process has the slot file.
  Result<SlotLoan> lend(std::uint32_t number, bool attached = false) const;
  /// Forgets a slot whose worker is dead and removes its file.
  void remove(std::uint32_t number);
  /// Gives a slot a new file whose process has ended, but whose descriptors somebody else has: a
  /// worker may pass them on, and they would keep the slot alive with all that its page holds.
  Status replace(std::uint32_t number);
  [[nodiscard]] bool alive(std::uint32_t number) const noexcept;
  /// Clears pins and leases of a dead worker. Must only be called when !alive(number).
  void clear(std::uint32_t number) noexcept;
  /// False when the worker has truncated its own file (shm/slot_guard.h). The caller must then end
  /// that worker and remove() the slot, whose successor needs a new file.
  [[nodiscard]] bool intact(std::uint32_t number) noexcept;
  /// Smallest epoch that any pin or lease of a living slot (or a manager's own pin) holds;
  /// UINT64_MAX when there is no pin. Loads are seq_cst: see shm/epoch.h.
  [[nodiscard]] std::uint64_t oldest_pinned() noexcept;
  /// Adds all pins and leases of living slots, and own pins, that name a version before `current`
  /// (shm/epoch.h). A living slot that is not in the table counts as holding all versions. Any
  /// thread.
  void collect(std::uint64_t current, struct Holds& holds);
  [[nodiscard]] SlotPage* page(std::uint32_t number) noexcept;
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;

  /// The manager's own readers (stats, export, transfer diff) pin here, never in a worker's slot.
  class OwnPin {
   public:
    OwnPin() = default;
    OwnPin(OwnPin&&) noexcept;
    OwnPin& operator=(OwnPin&&) noexcept;
    ~OwnPin();

   private:
    friend class SlotTable;
    std::shared_ptr<void> hold_;
  };
  /// Pins `epoch` (the current one; call on the commit thread, use in any).
  [[nodiscard]] OwnPin pin_own(std::uint64_t epoch);
  /// The epochs that own pins hold, ascending, each once.
  [[nodiscard]] std::vector<std::uint64_t> own_epochs() const;

 private:
  struct Impl;
  explicit SlotTable(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::shm
