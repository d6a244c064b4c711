#pragma once

#include <string>

#include "manager/io/store_file.h"
#include "shm/store.h"

namespace pando::manager {

/// The 128 random bits that tell one journal from all others: the file `identity` in its folder, as
/// 32 hexadecimal digits and their checksum. A folder without a journal gets one, durably, before
/// the first store refers to it. kNotFound: the journal has no such file. A file of another form is
/// kCorrupt: guessing would separate the store from its journal.
Result<shm::StoreOwner> journal_identity(Files& files, const std::string& directory);
/// The copy that the journal's segments and snapshots have. kNotFound: none has one; kCorrupt: two
/// of them differ; other errors: a file cannot be read, and no other has a copy.
Result<shm::StoreOwner> identity_in_files(Files& files, const std::string& directory);
/// A new identity, durably written. A damaged file of that name is kept.
Result<shm::StoreOwner> make_identity(Files& files, const std::string& directory);
/// Writes the file anew, durably.
Status write_identity(Files& files, const std::string& directory, const shm::StoreOwner& identity);

}  // namespace pando::manager
