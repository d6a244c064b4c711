// Any octets that a hijacked worker writes into its slot's file, and any length that it gives to
// the file: the manager never crashes, a pin of its own still counts, the slot of another worker is
// as before, and a slot that was cut off is known to be damaged.
//
// Input: one octet of mode, then writes: two octets of place, one of length, then the octets.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "ipc/seen_clients.h"
#include "manager/notify/seen_by_workers.h"
#include "manager/workers/rules/pin_watch.h"
#include "shm/map/holds.h"
#include "shm/reader.h"
#include "shm/slot_guard.h"
#include "shm/slots.h"
#include "tests/fuzz/served_zone.h"

namespace {

using namespace pando;
using shm::SlotPage;

constexpr std::uint8_t kDead = 1;     // the hostile worker has ended
constexpr std::uint8_t kCut = 2;      // the file is cut off at the place of the last write
constexpr std::uint8_t kCleared = 4;  // the manager clears the slot, as it does for a dead worker
constexpr std::uint32_t kHostile = 0;
constexpr std::uint32_t kOther = 1;
constexpr std::uint64_t kOwnPin = 3;

const char* const kZone = "@ 300 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n";

/// The manager's table of slots with a hostile worker and another one, which holds no version.
class Slots {
 public:
  Slots() {
    PANDO_ASSERT(shm::install_slot_guard());
    auto table = shm::SlotTable::open(folder_, zone_.path(), zone::layout_fingerprint());
    PANDO_ASSERT(table);
    table_.emplace(std::move(*table));
    own_pin_.emplace(table_->pin_own(kOwnPin));
    PANDO_ASSERT(table_->add(kOther));
    other_.emplace(attach(kOther));
  }
  void begin(bool dead) {
    PANDO_ASSERT(table_->add(kHostile));
    const std::string path = folder_ + "/" + std::to_string(kHostile) + ".slot";
    file_ = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    PANDO_ASSERT(file_);
    size_ = ::lseek(file_.get(), 0, SEEK_END);
    if (!dead) hostile_.emplace(attach(kHostile));
  }
  void end() {
    // The worker itself would fault in a page that it has cut off: nobody guards its mapping.
    PANDO_ASSERT(::ftruncate(file_.get(), size_) == 0);
    hostile_.reset();
    table_->remove(kHostile);
  }
  [[nodiscard]] shm::SlotTable& table() noexcept { return *table_; }
  [[nodiscard]] int file() const noexcept { return file_.get(); }

 private:
  shm::Reader attach(std::uint32_t number) {
    auto files = table_->lend(number);
    PANDO_ASSERT(files);
    auto reader = shm::Reader::attach(std::move(*files), zone::layout_fingerprint(), number);
    PANDO_ASSERT(reader);
    return std::move(*reader);
  }

  fuzz::ServedZone zone_{kZone};
  std::string folder_ = zone_.path() + ".slots";
  std::optional<shm::SlotTable> table_;
  std::optional<shm::SlotTable::OwnPin> own_pin_;
  std::optional<shm::Reader> other_;
  std::optional<shm::Reader> hostile_;
  Fd file_;
  off_t size_ = 0;  // of the file, as the manager made it
};

/// Everything that the manager reads from pages or writes into them.
void work_of_a_manager(shm::SlotTable& table, std::uint64_t current) {
  shm::Holds holds;
  table.collect(current, holds);
  PANDO_ASSERT(std::is_sorted(holds.exact.begin(), holds.exact.end()));
  PANDO_ASSERT(holds.exact.size() <= 2 * shm::kLeasesPerSlot + 2);
  const bool counts = kOwnPin < current;
  PANDO_ASSERT(std::binary_search(holds.exact.begin(), holds.exact.end(), kOwnPin) == counts);
  PANDO_ASSERT(table.oldest_pinned() <= kOwnPin);
  PANDO_ASSERT(table.alive(kOther) && table.intact(kOther));
  PANDO_ASSERT(table.page(kOther)->epoch.load() == 0 && table.page(kOther)->slot == kOther);
  static_cast<void>(manager::seen_by_workers(table, IpAddress::from_text("192.0.2.1").value()));
  SlotPage* page = table.page(kHostile);
  PANDO_ASSERT(page != nullptr);
  const std::uint64_t oldest = manager::PinWatch::oldest(*page);
  manager::PinWatch::revoke_up_to(*page, oldest);
  manager::PinWatch watch;
  static_cast<void>(
      watch.overdue(*page, std::chrono::steady_clock::now(), std::chrono::hours(1), current));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Slots* const slots = new Slots;
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  ByteView writes(data + 1, size - 1);
  slots->begin((mode & kDead) != 0);
  const SlotPage* const page = slots->table().page(kHostile);
  std::size_t place = 0;
  while (writes.size() > 3) {
    place = load_be16(writes.data()) % sizeof(SlotPage);
    const std::size_t length = std::min<std::size_t>(writes[2], writes.size() - 3);
    PANDO_ASSERT(::pwrite(slots->file(), writes.data() + 3, length, static_cast<off_t>(place)) ==
                 static_cast<ssize_t>(length));
    writes = writes.subspan(3 + length);
    work_of_a_manager(slots->table(), page->epoch.load() / 2);
  }
  if ((mode & kCut) != 0) {
    PANDO_ASSERT(::ftruncate(slots->file(), static_cast<off_t>(place)) == 0);
    PANDO_ASSERT(!slots->table().intact(kHostile));
  }
  work_of_a_manager(slots->table(), UINT64_MAX);
  if ((mode & kCleared) != 0 && (mode & kDead) != 0) {
    slots->table().clear(kHostile);
    PANDO_ASSERT((mode & kCut) != 0 || slots->table().oldest_pinned() == kOwnPin);
  }
  slots->end();
  return 0;
}
