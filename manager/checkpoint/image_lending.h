#pragma once

#include <string>

#include "shm/image_state.h"

/// An image's file of chunks in the hands of those who map it (shm/borrowing.h). Checkpoints write
/// in place what the last index does not refer to; whoever reads an older version from there must
/// not see that, so each descriptor that is given away carries a lock, which ends with its last
/// copy and the last mapping made of it, and a file that somebody has is left as it is.
namespace pando::manager {

/// A descriptor for one reader, with its own lock, of the file at `path`, which is made as long as
/// its first `chunks` are. kNotFound, kIo.
Result<shm::ImageFile> lend_image(const std::string& path, std::uint32_t chunks);

/// Whether anybody has one; true when it cannot be told.
[[nodiscard]] bool is_lent(const std::string& path) noexcept;

}  // namespace pando::manager
