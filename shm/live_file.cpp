#include "shm/live_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/crash_point.h"
#include "base/files/file_status.h"
#include "base/random.h"
#include "shm/image_state.h"
#include "shm/map/locks.h"

namespace pando::shm {

namespace {

/// Number of tries to open a name whose file other processes may rename at the same moment.
constexpr int kOpenAttempts = 16;

std::string new_name(const std::string& path) { return path + ".new"; }

bool names_this_file(const std::string& path, int fd) noexcept {
  struct stat named{};
  struct stat opened{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

Status lock_as_writer(int fd, const std::string& path) {
  auto locked = try_lock(fd, LockKind::kExclusive, kManagerLock);
  if (!locked) return pass(locked);
  if (!*locked) return fail(Errc::kExists, "{}: another manager holds this store", path);
  return {};
}

/// The file at `name`, empty and locked; created if missing.
Result<Fd> open_new_file(const std::string& name) {
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail(Errc::kIo, "{}: {}", name, fail_errno("open").value().text);
    if (auto locked = lock_as_writer(fd.get(), name); !locked) return pass(locked);
    // Another creator may have renamed the file between our open and our lock.
    if (!names_this_file(name, fd.get())) continue;
    if (::ftruncate(fd.get(), 0) != 0) return fail_errno("ftruncate");
    return fd;
  }
  return fail(Errc::kExists, "{}: other processes keep replacing this file", name);
}

Status set_mode(int fd, const StoreOptions& options) {
  if (::fchmod(fd, options.mode) != 0) return fail_errno("fchmod of the store");
  return {};
}

Status fill_header(int fd, Header& header, const StoreOptions& options) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_errno("fstat");
  header.magic = kStoreMagic;
  header.layout = fold_layout(options.layout);
  header.format = kFormatVersion;
  header.unit = kUnit;
  header.chunk_bytes = kChunkBytes;
  header.device = status.st_dev;
  header.inode = status.st_ino;
  header.nonce = random_number<std::uint64_t>();
  header.lineage = random_number<std::uint64_t>();
  header.committed.store(kChunksOffset, std::memory_order_relaxed);
  header.owner = options.owner;
  return {};
}

/// Renames the new file over a store that no process holds.
Status take_name(const std::string& path) {
  // Held until after the rename: a process that opens the old file in between finds it locked.
  auto old = open_store_file(path, O_RDWR);
  if (!old && old.error().code != Errc::kNotFound) return pass(old);
  if (old) {
    if (auto locked = lock_as_writer(old->get(), path); !locked) return locked;
  }
  crash_point("store-create-install");
  if (::rename(new_name(path).c_str(), path.c_str()) != 0)
    return fail_errno("rename of the new store");
  crash_point("store-create-installed");
  return {};
}

Result<Fd> open_and_lock(const std::string& path) {
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    auto fd = open_store_file(path, O_RDWR);
    if (!fd) return pass(fd);
    if (auto locked = lock_as_writer(fd->get(), path); !locked) return pass(locked);
    if (names_this_file(path, fd->get())) return fd;
  }
  return fail(Errc::kExists, "{}: other processes keep replacing this file", path);
}

/// The fields of a header that are checked before the file is mapped.
struct HeaderFacts {
  std::uint64_t magic;
  std::uint64_t layout;
  std::uint32_t format;
  std::uint32_t unit;
  std::uint64_t chunk_bytes;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t nonce;
  std::uint64_t size_limit;
  std::uint64_t committed;
  StoreOwner owner;
  std::uint64_t borrowed;  // with the field that follows, which is 0
};
static_assert(offsetof(HeaderFacts, borrowed) == offsetof(Header, borrowed) &&
                  offsetof(HeaderFacts, owner) == offsetof(Header, owner),
              "a header's fields would be read from their neighbours");

Status check_identity(const HeaderFacts& facts, const struct stat& status,
                      const std::string& path) {
  if (facts.device != status.st_dev || facts.inode != status.st_ino)
    return fail(Errc::kCorrupt, "{}: a copy of a store, not a live one", path);
  if (facts.committed < kChunksOffset || facts.committed > kReach ||
      facts.committed > static_cast<std::uint64_t>(status.st_size))
    return fail(Errc::kCorrupt, "{}: the file is shorter than its header says", path);
  return {};
}

Status check_layout(const HeaderFacts& facts, const std::string& path, std::uint64_t layout) {
  if (facts.magic != kStoreMagic) return fail(Errc::kCorrupt, "{}: not a zone store", path);
  if (facts.format != kFormatVersion || facts.unit != kUnit || facts.chunk_bytes != kChunkBytes ||
      facts.layout != fold_layout(layout))
    return fail(Errc::kLayout, "{}: made by a build with another layout", path);
  return {};
}

Result<HeaderFacts> checked_facts(int fd, const std::string& path, std::uint64_t layout) {
  HeaderFacts facts{};
  struct stat status{};
  if (!file_status(fd, status)) return fail_errno("fstat");
  const ssize_t got = ::pread(fd, &facts, sizeof facts, 0);
  if (got < 0) return fail_errno("pread");
  if (got != sizeof facts || !S_ISREG(status.st_mode))
    return fail(Errc::kCorrupt, "{}: not a zone store", path);
  if (auto same = check_layout(facts, path, layout); !same) return pass(same);
  if (auto live = check_identity(facts, status, path); !live) return pass(live);
  return facts;
}

/// Checks for a writer, in addition to a reader's.
Status check_for_writer(int fd, const StoreOptions& options) {
  auto facts = checked_facts(fd, options.path, options.layout);
  if (!facts) return pass(facts);
  if (options.owner != StoreOwner{} && facts->owner != options.owner)
    return fail(Errc::kDenied, "{}: {}", options.path, options.foreign);
  if (facts->borrowed != 0) {
    // The writer has ended, and its readers keep the image mapped in place of these chunks. So the
    // chunks' memory is freed for the next store.
    if (facts->borrowed <= kMaxChunks)
      static_cast<void>(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                    static_cast<off_t>(kChunksOffset),
                                    static_cast<off_t>(facts->borrowed * kChunkBytes)));
    return fail(Errc::kCorrupt, "{}: not all of the image had been copied to it", options.path);
  }
  return {};
}

}  // namespace

Result<StoreOwner> owner_of(const std::string& path, std::uint64_t layout) {
  auto file = open_store_file(path, O_RDONLY);
  if (!file) return pass(file);
  auto facts = checked_facts(file->get(), path, layout);
  if (!facts) return pass(facts);
  return facts->owner;
}

Status require_tmpfs(int fd, const std::string& path) {
  struct statfs filesystem{};
  if (::fstatfs(fd, &filesystem) != 0) return fail_errno("fstatfs");
  // On a disk filesystem each write may wait for the disk. Other filesystems do not even promise
  // that two processes see the same pages.
  if (filesystem.f_type != TMPFS_MAGIC)
    return fail(Errc::kUnsupported, "{}: the live store must be on a tmpfs (e.g. /dev/shm)", path);
  return {};
}

Result<Fd> open_store_file(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (fd) return fd;
  if (errno == ENOENT) return fail(Errc::kNotFound, "{}: no such store", path);
  if (errno == EACCES) return fail(Errc::kDenied, "{}: permission denied", path);
  auto error = fail_errno("open").value();
  return fail(Errc::kIo, "{}: {}", path, error.text);
}

Status check_header(int fd, const std::string& path, std::uint64_t layout) {
  auto facts = checked_facts(fd, path, layout);
  if (!facts) return pass(facts);
  return {};
}

bool died_borrowing(const StoreOptions& options) {
  for (const std::string& name : {options.path, new_name(options.path)}) {
    const auto fd = open_store_file(name, O_RDONLY);
    HeaderFacts facts{};
    if (fd && ::pread(fd->get(), &facts, sizeof facts, 0) == ssize_t{sizeof facts} &&
        check_layout(facts, name, options.layout) && facts.borrowed != 0)
      return true;
  }
  return false;
}

Result<LiveFile> LiveFile::create(const StoreOptions& options) {
  LiveFile file;
  auto fd = open_new_file(new_name(options.path));
  if (!fd) return pass(fd);
  file.fd_ = std::move(*fd);
  if (auto ready = file.prepare(options); !ready) {
    ::unlink(new_name(options.path).c_str());
    return pass(ready);
  }
  return file;
}

Status LiveFile::prepare(const StoreOptions& options) {
  if (!options.allow_any_filesystem) {
    if (auto fine = require_tmpfs(fd(), options.path); !fine) return fine;
  }
  if (auto backed = back_bytes(0, kPageBytes); !backed) return backed;
  // The whole reach has a size from the start, so that a short file is a damaged file.
  if (::ftruncate(fd(), kChunksOffset) != 0) return fail_errno("ftruncate");
  auto mapping = Mapping::map(fd(), Access::kReadWrite, kReach, kHugePage);
  if (!mapping) return pass(mapping);
  mapping_ = std::move(*mapping);
  if (auto filled = fill_header(fd(), header(), options); !filled) return filled;
  crash_point("store-create-header");
  return set_mode(fd(), options);
}

Status LiveFile::install(const StoreOptions& options) {
  auto placed = take_name(options.path);
  if (!placed) ::unlink(new_name(options.path).c_str());
  return placed;
}

void LiveFile::discard(const StoreOptions& options) noexcept {
  ::unlink(new_name(options.path).c_str());
}

Result<LiveFile> LiveFile::attach(const StoreOptions& options) {
  LiveFile file;
  auto fd = open_and_lock(options.path);
  if (!fd) return pass(fd);
  file.fd_ = std::move(*fd);
  if (!options.allow_any_filesystem) {
    if (auto fine = require_tmpfs(file.fd(), options.path); !fine) return pass(fine);
  }
  if (auto fine = check_for_writer(file.fd(), options); !fine) return pass(fine);
  auto mapping = Mapping::map(file.fd(), Access::kReadWrite, kReach, kHugePage);
  if (!mapping) return pass(mapping);
  file.mapping_ = std::move(*mapping);
  if (auto owned = set_mode(file.fd(), options); !owned) return pass(owned);
  if (auto counts = file.back_counts(file.committed_chunks()); !counts) return pass(counts);
  return file;
}

std::uint64_t LiveFile::memory_bytes() const noexcept {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) *
         512;  // POSIX leaves the unit open; Linux: 512
}

std::uint32_t LiveFile::committed_chunks() const noexcept {
  const std::uint64_t committed = header().committed.load(std::memory_order_relaxed);
  return static_cast<std::uint32_t>((committed - kChunksOffset) / kChunkBytes);
}

Status LiveFile::back_bytes(std::uint64_t at, std::uint64_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == ENOSPC || errno == EFBIG || errno == ENOMEM || errno == EDQUOT)
    return fail(Errc::kFull, "no memory left for the store (tmpfs or file size limit)");
  return fail_errno("fallocate of the store");
}

Status LiveFile::back_counts(std::uint32_t chunks) {
  constexpr std::uint32_t kPerPage = kPageBytes / sizeof(std::uint32_t);
  if (chunks <= counted_chunks_) return {};
  const std::uint32_t wanted = (chunks + kPerPage - 1) / kPerPage * kPerPage;
  const std::uint64_t at = kCountsOffset + counted_chunks_ * sizeof(std::uint32_t);
  auto backed = back_bytes(at, (wanted - counted_chunks_) * sizeof(std::uint32_t));
  if (backed) counted_chunks_ = wanted;
  return backed;
}

Status LiveFile::back(std::uint32_t first, std::uint32_t count) {
  if (auto counts = back_counts(first + count); !counts) return counts;
  crash_point("store-grow-counts");
  if (auto data = back_bytes(chunk_offset(first), count * kChunkBytes); !data) return data;
  crash_point("store-grow-file");
  const std::uint64_t end = chunk_offset(first) + count * kChunkBytes;
  if (end > header().committed.load(std::memory_order_relaxed))
    header().committed.store(end, std::memory_order_release);  // see Header::committed
  crash_point("store-grow-committed");
  return {};
}

Status LiveFile::reach(std::uint32_t chunks) {
  if (chunks <= committed_chunks()) return {};
  if (auto counts = back_counts(chunks); !counts) return counts;
  if (::ftruncate(fd(), static_cast<off_t>(chunk_offset(chunks))) != 0)
    return fail_errno("ftruncate of the store");
  header().committed.store(chunk_offset(chunks), std::memory_order_release);
  return {};
}

Status LiveFile::borrow(std::uint32_t chunks, const ImageFile& image) {
  auto mapped = mapping_.replace(kChunksOffset, chunks * kChunkBytes, image.fd.get(), image.first,
                                 Access::kRead);
  if (mapped) {
    header().borrowed.store(chunks, std::memory_order_release);
    return mapped;
  }
  // The failed call may have unmapped the store's pages already.
  auto back = mapping_.replace(kChunksOffset, chunks * kChunkBytes, fd(), kChunksOffset,
                               Access::kReadWrite);
  if (!back) die("the store's chunks cannot be mapped", __FILE__, __LINE__);
  return mapped;
}

/// Writes with write(2) rather than through a mapping. The kernel takes pages that are written
/// whole without zeroing them first, and reports a lack of memory.
Status LiveFile::write_chunk(std::uint32_t chunk, ByteView bytes) {
  auto at = static_cast<off_t>(chunk_offset(chunk));
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd(), bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno != ENOSPC && errno != ENOMEM && errno != EFBIG && errno != EDQUOT)
      return fail_errno("pwrite to the store");
    if (written <= 0)
      return fail(Errc::kFull, "no memory left for the store (tmpfs or file size limit)");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    at += written;
  }
  return {};
}

Status LiveFile::settle() {
  auto mapped = mapping_.replace(kChunksOffset, borrowed_chunks() * kChunkBytes, fd(),
                                 kChunksOffset, Access::kReadWrite);
  crash_point("borrowed-mapped");
  // The image is not at fault: the next start finds it unchanged.
  if (!mapped) die("the store's chunks cannot be mapped", __FILE__, __LINE__);
  header().borrowed.store(0, std::memory_order_release);  // see Header::borrowed
  return {};
}

bool LiveFile::punch(std::uint32_t first, std::uint32_t count) noexcept {
  crash_point("store-punch");
  const bool done = ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(chunk_offset(first)),
                                static_cast<off_t>(count * kChunkBytes)) == 0;
  crash_point("store-punched");
  return done;
}

std::uint32_t LiveFile::room() const noexcept {
  struct statfs filesystem{};
  // Blocks without a total: a tmpfs without a limit.
  if (::fstatfs(fd(), &filesystem) != 0 || filesystem.f_blocks == 0) return kMaxChunks;
  const std::uint64_t bytes =
      std::uint64_t{filesystem.f_bavail} * static_cast<std::uint64_t>(filesystem.f_bsize);
  const std::uint64_t chunks = bytes / (kChunkBytes + sizeof(std::uint32_t));  // and its count
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, kMaxChunks));
}

Status LiveFile::back_side(std::uint32_t granule) {
  auto backed = back_bytes(kSideOffset + granule * kSideGranuleBytes, kSideGranuleBytes);
  if (!backed) return backed;
  crash_point("store-grow-side");
  const std::uint64_t bit = std::uint64_t{1} << (granule % 64);
  header().side_backed[granule / 64].fetch_or(bit, std::memory_order_release);
  return {};
}

}  // namespace pando::shm
