#include "shm/slots.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "base/whole_number.h"
#include "shm/counts/group_access.h"
#include "shm/epoch.h"
#include "shm/layout.h"
#include "shm/live_file.h"
#include "shm/map/locks.h"
#include "shm/map/mapping.h"
#include "shm/slot_guard.h"

namespace pando::shm {

namespace {

constexpr std::string_view kSuffix = ".slot";

/// A slot's page as the manager sees it.
struct Slot {
  Fd file;
  Mapping mapping;
  GuardedPages guard;  // ends before the mapping
  [[nodiscard]] SlotPage* page() const noexcept {
    return reinterpret_cast<SlotPage*>(mapping.base());
  }
};

/// Versions that the manager's own readers hold; outlives the table while a pin is left.
struct OwnPins {
  std::mutex mutex;
  std::multiset<std::uint64_t> epochs;
};

std::optional<std::uint32_t> number_in(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const auto number = whole_number<std::uint32_t>(name);
  return number && *number < kMaxSlots ? number : std::nullopt;
}

/// Only the manager may enter the directory: a worker that could open its neighbours' slots could
/// drop their pins.
Status make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(Errc::kIo, "{}: {}", directory, fail_errno("mkdir").value().text);
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0) return fail_errno("lstat of the slot directory");
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    return fail(Errc::kDenied, "{}: must be a directory of this user", directory);
  if (::chmod(directory.c_str(), 0700) != 0) return fail_errno("chmod of the slot directory");
  return {};
}

void reset_holds(SlotPage& page) noexcept {
  page.epoch.store(0, std::memory_order_release);
  for (Lease& lease : page.leases) {
    drop_lease(lease);
    lease.revoke.store(0, std::memory_order_relaxed);
  }
}

Result<Fd> open_slot_file(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!fd) return fail(Errc::kIo, "{}: {}", path, fail_errno("open").value().text);
  return fd;
}

Result<Slot> map_slot(const std::string& path) {
  Slot slot;
  auto fd = open_slot_file(path, O_CREAT);
  if (!fd) return pass(fd);
  slot.file = std::move(*fd);
  // All memory is allocated now: a full filesystem must not be SIGBUS at some pin.
  if (const int error = ::posix_fallocate(slot.file.get(), 0, kSlotFileBytes); error != 0) {
    errno = error;
    return fail_errno("posix_fallocate of a slot");
  }
  auto mapping = Mapping::map(slot.file.get(), Access::kReadWrite, sizeof(SlotPage), kPageBytes);
  if (!mapping) return pass(mapping);
  slot.mapping = std::move(*mapping);
  slot.guard = GuardedPages(slot.mapping.base(), sizeof(SlotPage));
  return slot;
}

}  // namespace

const std::uint64_t kSlotFileSize = kSlotFileBytes;

std::string slot_path(const std::string& directory, std::uint32_t number) {
  return fmt::format("{}/{}{}", directory, number, kSuffix);
}

Result<std::vector<std::uint32_t>> slot_numbers(const std::string& directory) {
  std::vector<std::uint32_t> numbers;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) {
    const int why = errno;
    const Errc kind = why == EACCES ? Errc::kDenied : why == ENOENT ? Errc::kNotFound : Errc::kIo;
    return fail(kind, "{}: {}", directory, std::strerror(why));
  }
  while (const dirent* entry = ::readdir(entries))
    if (const auto number = number_in(entry->d_name)) numbers.push_back(*number);
  ::closedir(entries);
  return numbers;
}

struct SlotTable::Impl {
  [[nodiscard]] std::string path(std::uint32_t number) const {
    return slot_path(directory, number);
  }
  [[nodiscard]] bool alive(std::uint32_t number) const noexcept;
  Status initialize(SlotPage& page, std::uint32_t number) const;
  void make_new(SlotPage& page, std::uint32_t number) const noexcept;
  bool is_of_another_build(const Slot& slot) const;
  bool unknown_reader() const noexcept;

  std::string directory;
  Fd store;  // only to query the holders of locks
  std::uint64_t layout = 0;
  std::optional<gid_t> readers;  // group that may read the slots
  mutable std::mutex mutex;
  std::map<std::uint32_t, Slot> slots;
  std::set<std::uint32_t> replaced;  // whose locks on the store prove nothing
  std::shared_ptr<OwnPins> own = std::make_shared<OwnPins>();
};

/// After replace() the lock on the new slot file counts: only the present worker has a loan of it.
bool SlotTable::Impl::alive(std::uint32_t number) const noexcept {
  if (!replaced.contains(number))
    return find_lock(store.get(), kSlotLockBase + number, 1).has_value();
  const auto slot = slots.find(number);
  return slot != slots.end() && find_lock(slot->second.file.get(), 0, 1).has_value();
}

/// True for a page of another build whose process lives: that process holds the lock on its slot's
/// file, whatever store it reads. Only the first words of the page are the same in all builds.
bool SlotTable::Impl::is_of_another_build(const Slot& slot) const {
  const SlotPage& page = *slot.page();
  return page.magic == kSlotMagic && page.layout != layout &&
         find_lock(slot.file.get(), 0, 1).has_value();
}

/// A page of another build is made new, unless its worker lives.
Status SlotTable::Impl::initialize(SlotPage& page, std::uint32_t number) const {
  if (page.magic == kSlotMagic && page.layout == layout && page.slot == number) return {};
  if (alive(number))
    return fail(Errc::kLayout, "slot {} is held by a worker with another layout", number);
  make_new(page, number);
  return {};
}

void SlotTable::Impl::make_new(SlotPage& page, std::uint32_t number) const noexcept {
  reset_holds(page);
  // Another build may have had other data where the rows are.
  for (TransferRow& row : page.transfers) {
    row.key.store(0, std::memory_order_relaxed);
    for (auto& counter : row.counters) counter.store(0, std::memory_order_relaxed);
  }
  page.layout = layout;
  page.slot = number;
  page.pid = 0;
  page.started = 0;
  page.magic = kSlotMagic;
}

/// True when a living slot has no page in this table: its pins cannot be known.
bool SlotTable::Impl::unknown_reader() const noexcept {
  std::uint32_t from = 0;
  const auto locked_before = [&](std::uint32_t end) {
    return end > from && find_lock(store.get(), kSlotLockBase + from, end - from).has_value();
  };
  const auto pass_by = [&](std::uint32_t number) {
    if (locked_before(number)) return true;
    from = std::max(from, number + 1);
    return false;
  };
  auto next_replaced = replaced.begin();
  for (const auto& [number, slot] : slots) {
    for (; next_replaced != replaced.end() && *next_replaced < number; ++next_replaced)
      if (pass_by(*next_replaced)) return true;
    if (pass_by(number)) return true;
  }
  for (; next_replaced != replaced.end(); ++next_replaced)
    if (pass_by(*next_replaced)) return true;
  return locked_before(kMaxSlots);
}

SlotTable::SlotTable(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SlotTable::SlotTable(SlotTable&&) noexcept = default;
SlotTable& SlotTable::operator=(SlotTable&&) noexcept = default;
SlotTable::~SlotTable() = default;

Result<SlotTable> SlotTable::open(const std::string& directory, const std::string& store_path,
                                  std::uint64_t layout) {
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->layout = fold_layout(layout);
  auto store = open_store_file(store_path, O_RDONLY);
  if (!store) return pass(store);
  impl->store = std::move(*store);
  if (auto made = make_directory(directory); !made) return pass(made);
  SlotTable table(std::move(impl));
  auto numbers = slot_numbers(directory);
  if (!numbers) return pass(numbers);
  for (const std::uint32_t number : *numbers) {
    // A slot that cannot be added stays unknown: if its worker is alive, all versions count as
    // held.
    auto added = table.add(number);
    if (!added && added.error().code != Errc::kLayout) return pass(added);
  }
  return table;
}

Status SlotTable::share_with(std::uint32_t group, const std::string& store_path) {
  const std::scoped_lock lock(impl_->mutex);
  auto shared = give_to_group(impl_->directory, 0750, group);
  if (shared) shared = give_to_group(store_path, 0640, group);
  for (auto slot = impl_->slots.begin(); shared && slot != impl_->slots.end(); ++slot)
    shared = give_to_group(impl_->path(slot->first), 0640, group);
  if (shared)
    impl_->readers = group;
  else if (::chmod(impl_->directory.c_str(), 0700) != 0)
    return fail_errno("chmod of the slot directory");
  return shared;
}

Result<SlotPage*> SlotTable::add(std::uint32_t number) {
  if (number >= kMaxSlots)
    return fail(Errc::kInvalid, "slot {} is above {}", number, kMaxSlots - 1);
  const std::scoped_lock lock(impl_->mutex);
  if (const auto known = impl_->slots.find(number); known != impl_->slots.end())
    return known->second.page();
  auto slot = map_slot(impl_->path(number));
  if (slot && impl_->is_of_another_build(*slot)) {
    // The living worker keeps its unlinked file; the slot gets a new one.
    ::unlink(impl_->path(number).c_str());
    slot = map_slot(impl_->path(number));
  }
  if (!slot) return pass(slot);
  if (auto ready = impl_->initialize(*slot->page(), number); !ready) return pass(ready);
  // A worker without metrics is better than none.
  [[maybe_unused]] const Status shared =
      impl_->readers ? give_to_group(impl_->path(number), 0640, *impl_->readers) : Status();
  return impl_->slots.emplace(number, std::move(*slot)).first->second.page();
}

Result<SlotLoan> SlotTable::lend(std::uint32_t number, bool attached) const {
  if (number >= kMaxSlots) return fail(Errc::kInvalid, "no slot {}", number);
  const std::scoped_lock lock(impl_->mutex);
  SlotLoan loan;
  // By descriptor: another file may have the store's name by now.
  const std::string store = fmt::format("/proc/self/fd/{}", impl_->store.get());
  loan.store = Fd(::open(store.c_str(), O_RDONLY | O_CLOEXEC));
  if (!loan.store) return fail_errno("open of the store for a worker");
  auto slot = open_slot_file(impl_->path(number), 0);
  if (!slot) return pass(slot);
  loan.slot = std::move(*slot);
  auto taken = try_lock(loan.slot.get(), LockKind::kExclusive, 0);
  if (!taken) return pass(taken);
  if (!*taken && !attached) return fail(Errc::kExists, "another process has the slot's file");
  auto alive = try_lock(loan.store.get(), LockKind::kShared, kSlotLockBase + number);
  if (!alive) return pass(alive);
  if (!*alive) return fail(Errc::kExists, "the slot's lock on the store is taken");
  return loan;
}

void SlotTable::remove(std::uint32_t number) {
  const std::scoped_lock lock(impl_->mutex);
  ::unlink(impl_->path(number).c_str());
  impl_->slots.erase(number);
}

Status SlotTable::replace(std::uint32_t number) {
  const std::scoped_lock lock(impl_->mutex);
  ::unlink(impl_->path(number).c_str());
  auto slot = map_slot(impl_->path(number));
  if (!slot) return pass(slot);
  impl_->make_new(*slot->page(), number);
  [[maybe_unused]] const Status shared =
      impl_->readers ? give_to_group(impl_->path(number), 0640, *impl_->readers) : Status();
  impl_->slots.insert_or_assign(number, std::move(*slot));
  impl_->replaced.insert(number);
  return {};
}

bool SlotTable::alive(std::uint32_t number) const noexcept {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->alive(number);
}

void SlotTable::clear(std::uint32_t number) noexcept {
  const std::scoped_lock lock(impl_->mutex);
  const auto slot = impl_->slots.find(number);
  if (slot == impl_->slots.end() || impl_->alive(number)) return;
  // A new worker that is just attaching holds the file's lock, and resets the page itself.
  const auto locked = try_lock(slot->second.file.get(), LockKind::kExclusive, 0);
  if (!locked || !*locked) return;
  if (!impl_->alive(number)) reset_holds(*slot->second.page());
  unlock(slot->second.file.get(), 0);
}

bool SlotTable::intact(std::uint32_t number) noexcept {
  const std::scoped_lock lock(impl_->mutex);
  const auto slot = impl_->slots.find(number);
  if (slot == impl_->slots.end()) return true;
  struct stat status{};
  return ::fstat(slot->second.file.get(), &status) == 0 &&
         status.st_size >= static_cast<off_t>(kSlotFileBytes) &&
         slot->second.page()->magic == kSlotMagic;
}

void SlotTable::collect(std::uint64_t current, Holds& holds) {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->unknown_reader()) holds.oldest_batch = 0;
  for (const auto& [number, slot] : impl_->slots) {
    const Holds before{holds.oldest_batch, {}};
    const std::size_t exact = holds.exact.size();
    const bool damaged = slot.page()->magic != kSlotMagic;
    if (!collect_holds(*slot.page(), current, holds) && !damaged) continue;
    if (impl_->alive(number)) {
      // The page has gone and its pins with it, but the process may still read (shm/slot_guard.h).
      if (damaged) holds.oldest_batch = 0;
      continue;
    }
    // The worker is dead: pins and leases that it left in its page do not count.
    holds.oldest_batch = before.oldest_batch;
    holds.exact.resize(exact);
  }
  const std::scoped_lock own(impl_->own->mutex);
  for (const std::uint64_t epoch : impl_->own->epochs)
    if (epoch < current) holds.exact.push_back(epoch);
  std::sort(holds.exact.begin(), holds.exact.end());
  holds.exact.erase(std::unique(holds.exact.begin(), holds.exact.end()), holds.exact.end());
}

std::uint64_t SlotTable::oldest_pinned() noexcept {
  Holds holds;
  collect(UINT64_MAX, holds);
  return holds.exact.empty() ? holds.oldest_batch
                             : std::min(holds.oldest_batch, holds.exact.front());
}

SlotPage* SlotTable::page(std::uint32_t number) noexcept {
  const std::scoped_lock lock(impl_->mutex);
  const auto slot = impl_->slots.find(number);
  return slot == impl_->slots.end() ? nullptr : slot->second.page();
}

std::vector<std::uint32_t> SlotTable::numbers() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, slot] : impl_->slots) numbers.push_back(number);
  return numbers;
}

SlotTable::OwnPin::OwnPin(OwnPin&&) noexcept = default;
SlotTable::OwnPin& SlotTable::OwnPin::operator=(OwnPin&&) noexcept = default;
SlotTable::OwnPin::~OwnPin() = default;

std::vector<std::uint64_t> SlotTable::own_epochs() const {
  const std::scoped_lock lock(impl_->own->mutex);
  std::vector<std::uint64_t> epochs(impl_->own->epochs.begin(), impl_->own->epochs.end());
  epochs.erase(std::unique(epochs.begin(), epochs.end()), epochs.end());
  return epochs;
}

SlotTable::OwnPin SlotTable::pin_own(std::uint64_t epoch) {
  const std::shared_ptr<OwnPins> own = impl_->own;
  {
    const std::scoped_lock lock(own->mutex);
    own->epochs.insert(epoch);
  }
  OwnPin pin;
  // The deleter ends the pin, in whatever thread it runs.
  pin.hold_ = std::shared_ptr<void>(own.get(), [own, epoch](void*) {
    const std::scoped_lock lock(own->mutex);
    own->epochs.erase(own->epochs.find(epoch));
  });
  return pin;
}

}  // namespace pando::shm
