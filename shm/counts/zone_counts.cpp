#include "shm/counts/zone_counts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "base/crash_point.h"
#include "base/fd.h"
#include "base/files/file_status.h"
#include "shm/counts/group_access.h"

namespace pando::shm {

namespace {

constexpr std::uint64_t kCountsMagic = 0x31544E435A4450;  // "PDZCNT1"
constexpr std::size_t kFilePageBytes = 4096;
/// Fewer rows save nothing worth having.
constexpr std::size_t kFewestRows = 512;
constexpr std::size_t kMaxRows = std::size_t{1} << 18;

/// Half of the rows stay empty, so that a zone finds its row at the first tries.
std::size_t rows_for(std::size_t zones) noexcept {
  return std::bit_ceil(std::clamp(2 * zones, kFewestRows, kMaxRows));
}

constexpr std::size_t counts_file_bytes(std::size_t rows) noexcept {
  return sizeof(ZoneCountsHeader) + rows * sizeof(ZoneCountRow);
}

ZoneCountsHeader& counts_header(const Mapping& mapping) noexcept {
  return *reinterpret_cast<ZoneCountsHeader*>(mapping.base());
}

std::string unfinished_of(const std::string& path) { return path + ".new"; }

std::span<ZoneCountRow> rows_of(const Mapping& mapping) noexcept {
  auto* first = reinterpret_cast<ZoneCountRow*>(mapping.base() + sizeof(ZoneCountsHeader));
  return {first, counts_header(mapping).rows};
}

Result<Fd> open_file(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd) return fd;
  return fail(errno == ENOENT ? Errc::kNotFound : Errc::kIo, "{}: {}", path,
              fail_errno("open").value().text);
}

Result<Mapping> map_rows(const Fd& fd, Access access, std::size_t rows) {
  return Mapping::map(fd.get(), access, counts_file_bytes(rows), kFilePageBytes);
}

bool has_size(const Fd& fd, std::size_t bytes) noexcept {
  struct stat status{};
  return file_status(fd.get(), status) && status.st_size == static_cast<off_t>(bytes);
}

bool is_header_of(const ZoneCountsHeader& header, std::size_t rows) noexcept {
  return header.magic == kCountsMagic && header.row_bytes == sizeof(ZoneCountRow) &&
         header.rows == rows;
}

/// The file of an earlier manager with so many rows. Only a manager that has the run directory's
/// lock calls this, so no other one writes.
Result<Mapping> map_existing(const std::string& path, std::size_t rows) {
  auto fd = open_file(path, O_RDWR);
  if (!fd) return pass(fd);
  if (!has_size(*fd, counts_file_bytes(rows))) return fail(Errc::kLayout, "{}: another size", path);
  auto mapping = map_rows(*fd, Access::kReadWrite, rows);
  if (mapping && !is_header_of(counts_header(*mapping), rows))
    return fail(Errc::kLayout, "{}: another layout", path);
  return mapping;
}

/// The name is given last: a reader never sees a file without its header.
Result<Mapping> make_counts_file(const std::string& path, std::size_t rows) {
  const std::string unfinished = unfinished_of(path);
  ::unlink(unfinished.c_str());
  auto fd = open_file(unfinished, O_RDWR | O_CREAT | O_EXCL);
  if (!fd) return pass(fd);
  if (const int error =
          ::posix_fallocate(fd->get(), 0, static_cast<off_t>(counts_file_bytes(rows)));
      error != 0) {
    ::unlink(unfinished.c_str());
    errno = error;
    return fail_errno("posix_fallocate of the zones' counters");
  }
  auto mapping = map_rows(*fd, Access::kReadWrite, rows);
  if (!mapping) return mapping;
  ZoneCountsHeader& header = counts_header(*mapping);
  header.row_bytes = sizeof(ZoneCountRow);
  header.rows = rows;
  header.magic = kCountsMagic;
  crash_point("zone-counts-made");
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return fail_errno("rename of " + path);
  crash_point("zone-counts-named");
  return mapping;
}

}  // namespace

std::string zone_counts_path(const std::string& directory) { return directory + "/zones.counts"; }

Result<ZoneCounts> ZoneCounts::open(const std::string& directory, std::size_t zones) {
  std::string path = zone_counts_path(directory);
  const std::size_t rows = rows_for(zones);
  auto mapping = map_existing(path, rows);
  if (!mapping) mapping = make_counts_file(path, rows);
  if (!mapping) return pass(mapping);
  return ZoneCounts(std::move(path), std::move(*mapping));
}

void ZoneCounts::remove(const std::string& directory) noexcept {
  const std::string path = zone_counts_path(directory);
  ::unlink(path.c_str());
  ::unlink(unfinished_of(path).c_str());  // of a manager that was killed
}

Status ZoneCounts::share_with(std::uint32_t group) { return give_to_group(path_, 0640, group); }

void ZoneCounts::count(std::uint64_t key, std::size_t counter) noexcept {
  if (ZoneCountRow* row = take_count_row(rows_of(mapping_), key))
    return count_in_row(*row, counter);
  auto& lost = counts_header(mapping_).without_row;
  lost.store(lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

Result<ZoneCountsView> ZoneCountsView::open(const std::string& directory) {
  const std::string path = zone_counts_path(directory);
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return pass(fd);
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return fail_errno("fstat of " + path);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const std::size_t rows =
      (bytes - std::min(bytes, sizeof(ZoneCountsHeader))) / sizeof(ZoneCountRow);
  if (!std::has_single_bit(rows) || bytes != counts_file_bytes(rows))
    return fail(Errc::kLayout, "{}: another size", path);
  auto mapping = map_rows(*fd, Access::kRead, rows);
  if (!mapping) return pass(mapping);
  if (!is_header_of(counts_header(*mapping), rows))
    return fail(Errc::kLayout, "{}: another layout", path);
  return ZoneCountsView(std::move(*mapping));
}

std::optional<std::array<std::uint64_t, kZoneCounters>> ZoneCountsView::find(
    std::uint64_t key) const noexcept {
  const ZoneCountRow* row = find_count_row(rows_of(mapping_), key);
  if (row == nullptr) return std::nullopt;
  std::array<std::uint64_t, kZoneCounters> counters{};
  for (std::size_t i = 0; i < kZoneCounters; ++i)
    counters[i] = row->counters[i].load(std::memory_order_relaxed);
  return counters;
}

std::uint64_t ZoneCountsView::without_row() const noexcept {
  return counts_header(mapping_).without_row.load(std::memory_order_relaxed);
}

}  // namespace pando::shm
