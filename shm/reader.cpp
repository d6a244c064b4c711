#include "shm/reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/files/file_status.h"
#include "base/steady_time.h"
#include "base/unix_time.h"
#include "shm/epoch.h"
#include "shm/layout.h"
#include "shm/live_file.h"
#include "shm/map/mapping.h"

namespace pando::shm {

namespace {

Result<Mapping> map_slot_page(int fd) {
  struct stat status{};
  if (!file_status(fd, status)) return fail_errno("fstat of the slot file");
  if (status.st_size < static_cast<off_t>(kSlotFileBytes))
    return fail(Errc::kCorrupt, "the slot file is too short");
  return Mapping::map(fd, Access::kReadWrite, sizeof(SlotPage), kPageBytes);
}

}  // namespace

struct Reader::Impl {
  Status open_store(Fd file, std::uint64_t layout, const ImageFile& image);
  Status borrow(const ImageFile& image);
  void settle() noexcept;
  Status open_slot(std::uint32_t slot, Fd file, std::uint64_t layout);
  void begin_page() noexcept;
  [[nodiscard]] std::uint64_t readable_bytes() noexcept;
  [[nodiscard]] const Header& header() const noexcept {
    return *reinterpret_cast<const Header*>(store.base());
  }
  [[nodiscard]] SlotPage& page() const noexcept {
    return *reinterpret_cast<SlotPage*>(slot_mapping.base());
  }

  // Members are closed last to first. The lock that says "alive" goes after the mappings, so no
  // chunk is reused while this process can still read it.
  Fd store_file;
  Fd slot_file;
  Mapping slot_mapping;
  Mapping store;
  std::uint32_t borrowed = 0;  // chunks that are mapped from an image's file
  std::uint64_t pinned_version = 0;
  std::uint64_t file_bytes = 0;  // at least; the file never gets shorter
};

Status Reader::Impl::open_store(Fd file, std::uint64_t layout, const ImageFile& image) {
  if (auto fine = check_header(file.get(), "the store", layout); !fine) return fine;
  // The whole reach is mapped from the start: the file grows in place, and no reader maps again.
  auto mapping = Mapping::map(file.get(), Access::kRead, kReach, kHugePage);
  if (!mapping) return pass(mapping);
  store_file = std::move(file);
  store = std::move(*mapping);
  return borrow(image);
}

/// Maps the image's file over the chunks that the store does not have yet.
Status Reader::Impl::borrow(const ImageFile& image) {
  const std::uint32_t chunks = header().borrowed.load(std::memory_order_acquire);
  if (chunks == 0) return {};
  if (!image.fd) return fail(Errc::kInvalid, "the store borrows chunks of an image");
  if (chunks > kMaxChunks) return fail(Errc::kCorrupt, "the store borrows too many chunks");
  struct stat status{};
  if (!file_status(image.fd.get(), status)) return fail_errno("fstat of the image");
  // A read past the end of a file is SIGBUS, whatever the mapping's length.
  if (image.first + chunks * kChunkBytes > static_cast<std::uint64_t>(status.st_size))
    return fail(Errc::kCorrupt, "the image is shorter than what the store borrows");
  if (auto mapped = store.replace(kChunksOffset, chunks * kChunkBytes, image.fd.get(), image.first,
                                  Access::kRead);
      !mapped)
    return mapped;
  borrowed = chunks;
  return {};
}

/// The writer has copied the chunks: the store has the same bytes, and from now on changes go
/// there. Addresses of leases do not change, nor the bytes there.
void Reader::Impl::settle() noexcept {
  if (header().borrowed.load(std::memory_order_acquire) == borrowed) return;
  const auto mapped = store.replace(kChunksOffset, borrowed * kChunkBytes, store_file.get(),
                                    kChunksOffset, Access::kRead);
  // The image's bytes would be older than answers may be.
  if (!mapped) die("the store's chunks cannot be mapped", __FILE__, __LINE__);
  borrowed = 0;
}

Status Reader::Impl::open_slot(std::uint32_t slot, Fd file, std::uint64_t layout) {
  if (slot >= kMaxSlots) return fail(Errc::kInvalid, "slot {} is above {}", slot, kMaxSlots - 1);
  auto mapping = map_slot_page(file.get());
  if (!mapping) return pass(mapping);
  slot_file = std::move(file);
  slot_mapping = std::move(*mapping);
  if (page().magic != kSlotMagic || page().layout != fold_layout(layout))
    return fail(Errc::kLayout, "the slot was made by a build with another layout");
  if (page().slot != slot) return fail(Errc::kInvalid, "the file is of slot {}", page().slot);
  return {};
}

/// End of the readable part of the store. A damaged header must not lead past the end of the
/// file, where a read is SIGBUS. So `committed` is believed only up to the file's length, which is
/// read again when `committed` exceeds it.
std::uint64_t Reader::Impl::readable_bytes() noexcept {
  const std::uint64_t committed = header().committed.load(std::memory_order_acquire);
  if (committed <= file_bytes) [[likely]]
    return committed;
  struct stat status{};
  if (file_status(store_file.get(), status))
    file_bytes = std::min(static_cast<std::uint64_t>(status.st_size), kReach);
  return std::min(committed, file_bytes);
}

/// The previous worker is dead, so its pins do not count.
void Reader::Impl::begin_page() noexcept {
  page().epoch.store(0, std::memory_order_relaxed);
  for (Lease& lease : page().leases) {
    lease.epoch.store(0, std::memory_order_relaxed);
    lease.revoke.store(0, std::memory_order_relaxed);
  }
  page().pid = static_cast<std::uint32_t>(::getpid());
  page().started = unix_seconds();
}

Reader::Reader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() {
  if (impl_ == nullptr) return;
  unpin();
  for (Lease& lease : impl_->page().leases) drop_lease(lease);
}

Result<Reader> Reader::attach(SlotLoan files, std::uint64_t layout, std::uint32_t slot,
                              const ImageFile& image) {
  auto impl = std::make_unique<Impl>();
  if (auto opened = impl->open_store(std::move(files.store), layout, image); !opened)
    return pass(opened);
  if (auto opened = impl->open_slot(slot, std::move(files.slot), layout); !opened)
    return pass(opened);
  impl->begin_page();
  return Reader(std::move(impl));
}

Reader::View Reader::pin() noexcept {
  const Pinned pinned = shm::pin(impl_->header().publication, impl_->page().epoch);
  // Settles after loading the root, which may refer to a reused chunk.
  if (impl_->borrowed != 0) [[unlikely]]
    impl_->settle();
  View view;
  // The length is loaded after the root: the file is at least as long as any visible root needs.
  view.window = Window(impl_->store.base(), impl_->readable_bytes());
  if (const RootBlock* block = root_block_at(view.window, Ref<RootBlock>{pinned.root})) {
    view.version = block->version;
    view.root = Ref<>{block->root};
  }
  impl_->pinned_version = view.version;
  return view;
}

void Reader::leave() noexcept { impl_->page().started = 0; }

void Reader::settle() noexcept {
  if (impl_->borrowed != 0) impl_->settle();
}

void Reader::unpin() noexcept {
  shm::unpin(impl_->page().epoch);
  impl_->pinned_version = 0;
}

Result<std::size_t> Reader::take_lease() noexcept {
  if (impl_->pinned_version == 0) return fail(Errc::kInvalid, "a lease needs a pinned version");
  auto& leases = impl_->page().leases;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (leases[i].epoch.load(std::memory_order_relaxed) != 0) continue;
    leases[i].since.store(coarse_seconds(), std::memory_order_relaxed);
    leases[i].revoke.store(0, std::memory_order_relaxed);
    hold_lease(leases[i], impl_->pinned_version);
    return i;
  }
  return fail(Errc::kFull, "all {} leases are in use", leases.size());
}

bool Reader::lease_revoked(std::size_t lease) const noexcept {
  return lease < kLeasesPerSlot &&
         impl_->page().leases[lease].revoke.load(std::memory_order_relaxed) != 0;
}

void Reader::give_up_lease(std::size_t lease) noexcept {
  if (lease < kLeasesPerSlot) drop_lease(impl_->page().leases[lease]);
}

SlotPage& Reader::slot_page() noexcept { return impl_->page(); }

Reader::Scratch Reader::scratch() const noexcept {
  return {impl_->slot_file.get(), static_cast<off_t>(kScratchOffset), kScratchBytes};
}

const Store::SideEntry* Reader::side(std::uint32_t index) const noexcept {
  if (index >= Store::kSideEntries) return nullptr;
  const std::uint32_t granule = index / kSidePerGranule;
  const auto& bits = impl_->header().side_backed[granule / 64];
  // A granule without its bit has no memory, and reading a hole would allocate some.
  if ((bits.load(std::memory_order_acquire) >> (granule % 64) & 1) == 0) return nullptr;
  return reinterpret_cast<const Store::SideEntry*>(impl_->store.base() + kSideOffset) + index;
}

}  // namespace pando::shm
