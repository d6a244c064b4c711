#include "shm/inspect/inspection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "shm/live_file.h"
#include "shm/map/locks.h"

namespace pando::shm {

namespace {

const Header& header_of(const Window& window) noexcept {
  return *reinterpret_cast<const Header*>(window.base());
}

const RootBlock* current_root(const Window& window) noexcept {
  const Ref<RootBlock> ref{header_of(window).publication.root.load(std::memory_order_acquire)};
  const RootBlock* block = root_block_at(window, ref);
  return block != nullptr && block->checksum == root_checksum(*block) ? block : nullptr;
}

}  // namespace

std::vector<std::uint32_t> occupancy(const Window& window) {
  const RootBlock* root = current_root(window);
  if (root == nullptr) return {};
  const auto* counts = reinterpret_cast<const std::uint32_t*>(window.base() + kCountsOffset);
  std::vector<std::uint32_t> live((window.limit() - kChunksOffset) / kChunkBytes);
  for (std::size_t chunk = 0; chunk < live.size(); ++chunk) live[chunk] = live_bytes(counts[chunk]);
  // The writer may have died before it wrote these counts; attaching applies them as well.
  for (std::uint32_t i = 0; i < root->changes; ++i)
    if (changes_of(*root)[i].chunk < live.size())
      live[changes_of(*root)[i].chunk] = live_bytes(changes_of(*root)[i].count);
  std::uint64_t offset = header_of(window).publication.root.load(std::memory_order_acquire) * kUnit;
  for (std::uint64_t rest = block_bytes(root->bytes); rest > 0;) {
    const std::uint32_t chunk = chunk_at(offset);
    if (chunk >= live.size()) break;
    const std::uint64_t part = std::min(rest, chunk_offset(chunk) + kChunkBytes - offset);
    live[chunk] -= static_cast<std::uint32_t>(part);
    offset += part;
    rest -= part;
  }
  return live;
}

Result<Inspection> Inspection::open(const std::string& path, std::uint64_t layout) {
  Inspection inspection;
  auto file = open_store_file(path, O_RDONLY);
  if (!file) return pass(file);
  inspection.file_ = std::move(*file);
  if (find_lock(inspection.file_.get(), kManagerLock, 1))
    return fail(Errc::kExists, "{}: a manager has this store; ask it instead", path);
  if (auto read = inspection.read_header(path, layout); !read) return pass(read);
  if (auto read = inspection.read_version(path); !read) return pass(read);
  return inspection;
}

Status Inspection::read_header(const std::string& path, std::uint64_t layout) {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return fail_errno("fstat");
  if (static_cast<std::uint64_t>(status.st_size) < kChunksOffset)
    return fail(Errc::kCorrupt, "{}: not a zone store", path);
  // No store is longer, whatever the file's size and header say.
  limit_ = std::min(static_cast<std::uint64_t>(status.st_size), kReach);
  auto mapping = Mapping::map(file_.get(), Access::kRead, limit_, kPageBytes);
  if (!mapping) return pass(mapping);
  mapping_ = std::move(*mapping);
  const Header& header = header_of(window());
  if (header.magic != kStoreMagic) return fail(Errc::kCorrupt, "{}: not a zone store", path);
  if (header.format != kFormatVersion || header.unit != kUnit ||
      header.chunk_bytes != kChunkBytes || header.layout != fold_layout(layout))
    return fail(Errc::kLayout, "{}: made by a build with another layout", path);
  if (header.borrowed.load(std::memory_order_relaxed) != 0)
    return fail(Errc::kCorrupt, "{}: not all of the image had been copied to it", path);
  const std::uint64_t committed = header.committed.load(std::memory_order_relaxed);
  if (committed < kChunksOffset || committed > limit_)
    return fail(Errc::kCorrupt, "{}: the file is shorter than its header says", path);
  limit_ = committed;
  return {};
}

Status Inspection::read_version(const std::string& path) {
  const RootBlock* root = current_root(window());
  if (root == nullptr) return fail(Errc::kCorrupt, "{}: its root block is damaged", path);
  version_ = {root->version, Ref<>{root->root}, root->journal_position};
  return {};
}

}  // namespace pando::shm
