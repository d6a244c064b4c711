#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "shm/map/mapping.h"
#include "shm/map/ref.h"

/// Reads a live store from a process that pins nothing and writes nothing, for monitoring.
///
/// Without a pin the writer may reuse a chunk while it is read. So an observer notes the current
/// version, copies data from it, and then checks that this version is still current. If so, no
/// block of it was freed and no chunk reused (docs/explanation/chunk-reuse.md). If not, the copy
/// may be garbage, and the observer tries again. Views check all references, so garbage causes
/// neither a fault nor an endless loop.
///
/// A process that stops or dies while it observes delays no reuse of memory and leaves no files.
namespace pando::shm {

class Observer {
 public:
  /// Opens the store read-only. Errors: kNotFound, kCorrupt, kLayout, kIo.
  static Result<Observer> open(const std::string& path, std::uint64_t layout);

  /// The version of one moment.
  struct Look {
    Window window;
    std::uint64_t version = 0;
    Ref<> root;               ///< the root the caller gave to Store::publish
    std::uint64_t epoch = 0;  ///< for holds()
  };
  /// kUnsupported while the store borrows an image's chunks (shm/borrowing.h), which only workers
  /// map. kCorrupt: no version can be read.
  [[nodiscard]] Result<Look> look() const;
  /// Whether all data read through `look` belong to one version. False: they must be dropped.
  [[nodiscard]] bool holds(const Look& look) const noexcept;
  /// The number of the current version.
  [[nodiscard]] std::uint64_t version() const noexcept;
  /// Bytes of the machine's memory that the file has.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  /// False when `path` names another file by now: a new store.
  [[nodiscard]] bool is_at(const std::string& path) const noexcept;
  /// For queries about locks (shm/inspect/slot_pages.h).
  [[nodiscard]] int fd() const noexcept { return file_.get(); }

 private:
  [[nodiscard]] std::uint64_t readable_bytes() const noexcept;

  Fd file_;
  Mapping mapping_;
};

}  // namespace pando::shm
