#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "shm/image_state.h"
#include "shm/map/ref.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::shm {

/// A reader's mapping: the store O_RDONLY and PROT_READ over its whole reach, and one slot page
/// read-write. One per worker process; not thread-safe.
class Reader {
 public:
  /// Maps the files of a loan, after checks of header and layout. The lender already holds the
  /// locks that say "slot alive" and "slot taken"; a reader opens and locks nothing, so that its
  /// process may be forbidden to. `image` is the file of a store that borrows its chunks
  /// (shm/borrowing.h; kInvalid without it). That file stays mapped until settle() finds the chunks
  /// in the store.
  static Result<Reader> attach(SlotLoan files, std::uint64_t layout, std::uint32_t slot,
                               const ImageFile& image = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  /// The pinned version: valid until unpin() (or, for leases, until the lease is given up).
  struct View {
    Window window;
    std::uint64_t version = 0;
    Ref<> root;  ///< the root the caller gave to Store::publish
  };

  /// Pins the current version for one batch. Call after the receive returned, so that a client
  /// that saw an acknowledgement never meets older data. Protocol and memory orders: shm/epoch.h.
  [[nodiscard]] View pin() noexcept;
  void unpin() noexcept;
  /// Checks whether a store that borrowed its chunks has them by now; each pin() does the same. The
  /// reader then unmaps the image's file.
  void settle() noexcept;

  /// Turns the pinned version into a lease for a long transfer; kFull when all are in use.
  /// Call while pinned.
  Result<std::size_t> take_lease() noexcept;
  [[nodiscard]] bool lease_revoked(std::size_t lease) const noexcept;
  void give_up_lease(std::size_t lease) noexcept;

  /// The worker was ordered to stop, so its end is no failure (SlotPage::started).
  void leave() noexcept;

  [[nodiscard]] SlotPage& slot_page() noexcept;
  /// The slot's scratch memory, which its user maps. The memory is allocated, so a full filesystem
  /// does no harm.
  struct Scratch {
    int file;
    off_t offset;
    std::size_t bytes;
  };
  [[nodiscard]] Scratch scratch() const noexcept;
  [[nodiscard]] const Store::SideEntry* side(std::uint32_t index) const noexcept;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::shm
