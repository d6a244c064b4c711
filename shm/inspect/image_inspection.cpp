#include "shm/inspect/image_inspection.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "shm/layout.h"

namespace pando::shm {

namespace {

constexpr std::string_view kQuarantined = ".quarantined";

Result<Fd> open_for_reading(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  if (errno == ENOENT) return fail(Errc::kNotFound, "{}: no such file", path);
  if (errno == EACCES) return fail(Errc::kDenied, "{}: permission denied", path);
  return fail(Errc::kIo, "{}: {}", path, fail_errno("open").value().text);
}

Result<std::uint64_t> size_of(const Fd& fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0)
    return fail(Errc::kIo, "{}: {}", path, fail_errno("fstat").value().text);
  return static_cast<std::uint64_t>(status.st_size);
}

/// Reads fewer bytes than asked for only at the end of the file.
Result<std::size_t> read_at(const Fd& fd, const std::string& path, std::uint64_t offset,
                            std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd.get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Errc::kIo, "{}: {}", path, fail_errno("pread").value().text);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<Bytes> read_index_file(const std::string& path) {
  auto fd = open_for_reading(path);
  if (!fd) return pass(fd);
  auto size = size_of(*fd, path);
  if (!size) return pass(size);
  if (*size > kMaxIndexBytes)
    return fail(Errc::kCorrupt, "{}: too large for an image's index", path);
  Bytes bytes(*size);
  auto got = read_at(*fd, path, 0, bytes);
  if (!got) return pass(got);
  bytes.resize(*got);
  return bytes;
}

}  // namespace

Result<ImageInspection> ImageInspection::open(const std::string& path, std::uint64_t layout,
                                              const Progress& progress) {
  ImageInspection image;
  image.path_ = path;
  if (auto read = image.read_index(); !read) return pass(read);
  Status sound = image.open_chunks();
  if (sound) sound = image.compare(progress);
  // The chunks of a replaced index may have been overwritten or removed.
  if (!sound && !image.is_current())
    return fail(Errc::kExists, "{}: replaced by its manager meanwhile, try again", path);
  if (!sound) return pass(sound);
  if (image.index_.layout != layout)
    return fail(Errc::kLayout, "{}: made by a build with another layout (all checksums are right)",
                path);
  if (auto mapped = image.map(); !mapped) return pass(mapped);
  return image;
}

bool ImageInspection::is_current() const {
  const auto now = read_index_file(path_);
  return now && *now == bytes_of_index_;
}

Status ImageInspection::read_index() {
  auto bytes = read_index_file(path_);
  if (!bytes) return pass(bytes);
  auto index = decode_image_index(*bytes);
  if (!index) return fail(index.error().code, "{}: {}", path_, index.error().text);
  bytes_of_index_ = std::move(*bytes);
  index_ = std::move(*index);
  return {};
}

/// The chunks of a quarantined image keep their old name.
Status ImageInspection::open_chunks() {
  chunks_path_ = image_chunks_path(path_, index_.file);
  auto opened = open_for_reading(chunks_path_);
  if (!opened && opened.error().code == Errc::kNotFound && path_.ends_with(kQuarantined)) {
    chunks_path_ =
        image_chunks_path(path_.substr(0, path_.size() - kQuarantined.size()), index_.file);
    opened = open_for_reading(chunks_path_);
  }
  if (!opened) return pass(opened);
  chunks_ = std::move(*opened);
  Bytes head(kImageChunksHeadBytes);
  auto got = read_at(chunks_, chunks_path_, 0, head);
  if (!got) return pass(got);
  if (head != encode_image_chunks_head(index_.file))
    return fail(Errc::kCorrupt, "{}: not the chunks of {}", chunks_path_, path_);
  auto bytes = size_of(chunks_, chunks_path_);
  if (!bytes) return pass(bytes);
  if (*bytes < image_chunks_bytes(index_.state))
    return fail(Errc::kCorrupt, "{}: cut off at byte {}", chunks_path_, *bytes);
  return {};
}

Status ImageInspection::compare(const Progress& progress) const {
  const auto room = std::make_unique<std::array<std::uint8_t, kChunkBytes>>();
  std::uint64_t total = 0;
  for (const ImageChunk& chunk : index_.state.chunks) total += chunk.used;
  std::uint64_t done = 0;
  std::uint32_t damaged = 0;
  std::uint32_t first = 0;
  for (std::uint32_t number = 0; number < index_.state.chunks.size(); ++number) {
    const ImageChunk& chunk = index_.state.chunks[number];
    if (chunk.count == 0) continue;
    if (chunk.used > kChunkBytes)
      return fail(Errc::kCorrupt, "{}: chunk {} is too long", path_, number);
    const auto bytes = std::span(*room).first(chunk.used);
    auto got = read_at(chunks_, chunks_path_, image_chunk_offset(number), bytes);
    if (!got) return pass(got);
    if (*got == bytes.size() && chunk_checksum(bytes) == chunk.checksum) {
      done += chunk.used;
      if (progress) progress(done, total);
    } else if (damaged++ == 0) {
      first = number;
    }
  }
  if (damaged == 0) return {};
  return fail(Errc::kCorrupt, "{}: {} of its chunks are damaged, the first one at byte {}",
              chunks_path_, damaged, image_chunk_offset(first));
}

/// Builds a store's tables in memory, and maps the file of chunks after them.
Status ImageInspection::map() {
  const std::vector<ImageChunk>& chunks = index_.state.chunks;
  if (chunks.size() > kMaxChunks) return fail(Errc::kCorrupt, "{}: too many chunks", path_);
  bytes_ = chunk_offset(chunks.size());
  tables_ = Fd(::memfd_create("image", MFD_CLOEXEC));
  if (!tables_ || ::ftruncate(tables_.get(), static_cast<off_t>(bytes_)) != 0)
    return fail_errno("memory for the image's tables");
  auto mapping = Mapping::map(tables_.get(), Access::kReadWrite, bytes_, kPageBytes);
  if (!mapping) return pass(mapping);
  mapping_ = std::move(*mapping);
  auto& header = *reinterpret_cast<Header*>(mapping_.base());
  header.committed.store(bytes_, std::memory_order_relaxed);
  header.publication.root.store(index_.state.root_block, std::memory_order_relaxed);
  header.publication.epoch.store(index_.state.version, std::memory_order_relaxed);
  auto* counts = reinterpret_cast<std::uint32_t*>(mapping_.base() + kCountsOffset);
  for (std::size_t number = 0; number < chunks.size(); ++number)
    counts[number] = chunks[number].count;
  // The file may end within the last chunk. Pages past the file's end must not be touched.
  auto bytes = size_of(chunks_, chunks_path_);
  if (!bytes) return pass(bytes);
  const std::uint64_t there =
      std::min(std::max(*bytes, kChunkBytes) - kChunkBytes, chunks.size() * kChunkBytes);
  const std::uint64_t pages = there / kPageBytes * kPageBytes;
  auto placed = mapping_.replace(kChunksOffset, pages, chunks_.get(), kChunkBytes, Access::kRead);
  if (!placed) return placed;
  auto* rest = reinterpret_cast<std::uint8_t*>(mapping_.base() + kChunksOffset + pages);
  auto got = read_at(chunks_, chunks_path_, kChunkBytes + pages, {rest, there - pages});
  if (!got) return pass(got);
  const RootBlock* root = root_block_at(window(), Ref<RootBlock>{index_.state.root_block});
  if (root == nullptr || root->checksum != root_checksum(*root))
    return fail(Errc::kCorrupt, "{}: its root block is damaged", path_);
  version_ = {root->version, Ref<>{root->root}, root->journal_position};
  return {};
}

}  // namespace pando::shm
