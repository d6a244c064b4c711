#include "shm/map/mapping.h"

#include <sys/mman.h>

#include <boost/interprocess/detail/os_file_functions.hpp>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <utility>

namespace pando::shm {

namespace bip = boost::interprocess;

namespace {

/// The interface that mapped_region needs of a file, over a borrowed descriptor.
struct BorrowedFile {
  int fd;
  bip::mode_t mode;
  [[nodiscard]] bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd);
  }
  [[nodiscard]] bip::mode_t get_mode() const { return mode; }
};

/// Reserves aligned addresses. The file is then mapped over them in one step, so no other thread's
/// mapping can get in between.
class Reservation {
 public:
  Reservation(std::size_t bytes, std::size_t alignment) noexcept : bytes_(bytes) {
    const std::size_t whole = bytes + alignment;
    void* start =
        ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return;
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t aligned = (first + alignment - 1) / alignment * alignment;
    trim(first, aligned - first);
    trim(aligned + bytes, first + whole - (aligned + bytes));
    address_ = reinterpret_cast<void*>(aligned);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (address_ != nullptr) ::munmap(address_, bytes_);
  }
  [[nodiscard]] void* address() const noexcept { return address_; }
  void used() noexcept { address_ = nullptr; }

 private:
  static void trim(std::uintptr_t at, std::size_t bytes) noexcept {
    if (bytes != 0) ::munmap(reinterpret_cast<void*>(at), bytes);
  }
  void* address_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

struct Mapping::Region {
  bip::mapped_region mapped;
};

Mapping::Mapping() noexcept = default;
Mapping::Mapping(Mapping&&) noexcept = default;
Mapping& Mapping::operator=(Mapping&&) noexcept = default;
Mapping::~Mapping() = default;

Result<Mapping> Mapping::map(int fd, Access access, std::size_t bytes, std::size_t alignment) {
  Reservation reserved(bytes, alignment);
  if (reserved.address() == nullptr) return fail_errno("mmap of address space for the store");
  const auto mode = access == Access::kRead ? bip::read_only : bip::read_write;
  Mapping mapping;
  try {
    mapping.region_ = std::make_unique<Region>(Region{bip::mapped_region(
        BorrowedFile{fd, mode}, mode, 0, bytes, reserved.address(), MAP_FIXED | MAP_NORESERVE)});
  } catch (const bip::interprocess_exception& error) {
    return fail(Errc::kIo, "mapping the store: {}", error.what());
  }
  reserved.used();
  // Zone data is not worth a core dump of gigabytes, and keys in it should not land on disk.
  ::madvise(mapping.base(), bytes, MADV_DONTDUMP);
  return mapping;
}

Status Mapping::replace(std::size_t at, std::size_t bytes, int fd, std::uint64_t offset,
                        Access access) {
  if (bytes == 0) return {};
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const start = base() + at;
  if (::mmap(start, bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
             static_cast<off_t>(offset)) == MAP_FAILED)
    return fail_errno("mmap over a part of the store");
  ::madvise(start, bytes, MADV_DONTDUMP);
  return {};
}

std::byte* Mapping::base() const noexcept {
  return region_ ? static_cast<std::byte*>(region_->mapped.get_address()) : nullptr;
}

}  // namespace pando::shm
