#pragma once

#include <string>

#include "shm/image_state.h"

/// Lends an image's file of chunks to processes that map the file (shm/borrowing.h). Checkpoints
/// overwrite chunks that the last index does not refer to, and a reader of an older version must
/// not see that. So each lent descriptor carries a lock, which ends with its last copy and the last
/// mapping made of it. A locked file is left as it is.
namespace pando::manager {

/// A descriptor for one reader, with its own lock, of the file at `path`. A short file is extended
/// to `chunks` whole chunks. kNotFound, kIo.
Result<shm::ImageFile> lend_image(const std::string& path, std::uint32_t chunks);

/// Whether any process has a lent descriptor; true when that cannot be found out.
[[nodiscard]] bool is_lent(const std::string& path) noexcept;

}  // namespace pando::manager
