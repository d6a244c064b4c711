#pragma once

#include <functional>
#include <optional>

#include "manager/checkpoint/image.h"
#include "manager/checkpoint/image_copying.h"
#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/build/draft.h"

namespace pando::manager {

struct OpenedStore {
  shm::Store store;
  /// kEmpty: made anew, zones have to be loaded; kImage, kDump: as these have it, with what the
  /// journal has behind them.
  enum class From : std::uint8_t { kLive, kEmpty, kImage, kDump } from = From::kLive;
  std::optional<LentImage> lent{};  ///< the image has yet to be copied
  /// With kImage: each chunk of its version is as the image has it. Else what came behind it needed
  /// the room, and the image is nothing to go on with.
  bool has_image_version = true;
};

/// What brings a store up to the present before anybody else sees it: one that is attached to
/// later, after whatever end of this process, is not behind the journal by more than its last
/// group.
using BringUp = std::function<Status(shm::Store&)>;

/// What a store can be made from.
struct StoreSeeds {
  BringUp dump{};  ///< makes an empty store what a dump says; empty: there is none
  std::function<Status()> without_dump{};  ///< it failed; an error ends the opening
  Image* image = nullptr;                  ///< null or without index: there is none
  BringUp bring_up{};                      ///< a store made from the image (replay_onto_image())
  bool copy_first = false;  ///< all of the image, whatever its size, before anything is served
  std::function<Status()> not_live{};  ///< before a store is made; an error ends the opening
  std::function<void(const Error&)> image_refused{};  ///< it could not be used
  /// Nothing could be used, and the empty store is about to get its name.
  std::function<void()> begins_empty{};
};

/// Attaches to the live store. When there is none that this build can use, makes one from the dump,
/// else from the image, else an empty one. A seed that cannot be used is told and left out,
/// a dump if `without_dump` agrees.
/// kExists: another manager runs.
Result<OpenedStore> open_store(const shm::StoreOptions& options, const StoreSeeds& seeds = {});

/// Applies the journal's records behind the store's position: what was durable but not published
/// when the last manager died. A record that does not fit its zone's serial is skipped with a note.
Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note);

}  // namespace pando::manager
