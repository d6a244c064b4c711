#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace pando::manager::systemd {

/// A descriptor that the service manager has passed to this process.
struct InheritedDescriptor {
  std::string name;
  Fd fd;
};

/// The descriptors that the service manager has passed (LISTEN_FDS in sd_listen_fds(3)): those of a
/// DescriptorStore of an earlier process, and those of socket units. Call it once, before anything
/// else opens a descriptor or starts a process.
std::vector<InheritedDescriptor> take_inherited_descriptors();

/// The service manager's store of this unit's descriptors (FDSTORE in sd_notify(3)). It keeps each
/// descriptor over the end of this process, however it ends, and passes it to the next one. Without
/// a service manager all methods do nothing.
class DescriptorStore {
 public:
  DescriptorStore();

  /// False: nothing can be stored, or leave() was called.
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  /// Stores a duplicate of `descriptor`. A name is used for one descriptor at a time.
  void keep(const std::string& name, int descriptor) const;
  /// The service manager closes its duplicate, a moment later.
  void remove(const std::string& name) const;
  /// This process is about to end: all stored descriptors stay, whatever is closed from now on.
  void leave() noexcept { open_ = false; }

 private:
  bool open_ = false;
};

}  // namespace pando::manager::systemd
