#include "shm/inspect/observer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "shm/layout.h"
#include "shm/live_file.h"

namespace pando::shm {

namespace {

const Header& header_of(const Mapping& mapping) noexcept {
  return *reinterpret_cast<const Header*>(mapping.base());
}

/// A version's blocks may be overwritten as soon as it has a successor.
constexpr int kLooks = 100;

}  // namespace

Result<Observer> Observer::open(const std::string& path, std::uint64_t layout) {
  Observer observer;
  auto file = open_store_file(path, O_RDONLY);
  if (!file) return pass(file);
  if (auto fine = check_header(file->get(), path, layout); !fine) return pass(fine);
  // The whole reach is mapped from the start, because the file grows in place.
  auto mapping = Mapping::map(file->get(), Access::kRead, kReach, kHugePage);
  if (!mapping) return pass(mapping);
  observer.file_ = std::move(*file);
  observer.mapping_ = std::move(*mapping);
  return observer;
}

/// A damaged header must not lead past the end of the file, where a read is SIGBUS. The file
/// never gets shorter.
std::uint64_t Observer::readable_bytes() const noexcept {
  const std::uint64_t committed =
      header_of(mapping_).committed.load(std::memory_order_acquire);
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return 0;
  return std::min({committed, static_cast<std::uint64_t>(status.st_size), kReach});
}

Result<Observer::Look> Observer::look() const {
  const Header& header = header_of(mapping_);
  for (int attempt = 0; attempt < kLooks; ++attempt) {
    Look look;
    // The epoch first, as a reader that pins it: the root is of this version or the next one.
    look.epoch = header.publication.epoch.load(std::memory_order_seq_cst);
    const Ref<RootBlock> root{header.publication.root.load(std::memory_order_seq_cst)};
    // The writer clears `borrowed` before any root that refers to a reused chunk.
    if (header.borrowed.load(std::memory_order_acquire) != 0)
      return fail(Errc::kUnsupported, "the store is still being copied from its image");
    look.window = Window(mapping_.base(), readable_bytes());
    const RootBlock* block = root_block_at(look.window, root);
    if (block == nullptr) continue;
    look.version = block->version;
    look.root = Ref<>{block->root};
    if (holds(look)) return look;
  }
  return fail(Errc::kCorrupt, "no version of the store could be read");
}

/// The fence orders the reads of blocks before the load of the epoch. The writer's side of the pair
/// is epoch.store(v), then loads of all slots, then writes into the chunks that v freed; all of it
/// seq_cst but the last, which the loads keep after them.
bool Observer::holds(const Look& look) const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return header_of(mapping_).publication.epoch.load(std::memory_order_seq_cst) == look.epoch;
}

std::uint64_t Observer::version() const noexcept {
  return header_of(mapping_).publication.epoch.load(std::memory_order_relaxed);
}

std::uint64_t Observer::memory_bytes() const noexcept {
  constexpr std::uint64_t kStatBlock = 512;  // stat(2)
  struct stat status{};
  return ::fstat(file_.get(), &status) != 0
             ? 0
             : static_cast<std::uint64_t>(status.st_blocks) * kStatBlock;
}

bool Observer::is_at(const std::string& path) const noexcept {
  struct stat mine{};
  struct stat there{};
  return ::fstat(file_.get(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

}  // namespace pando::shm
