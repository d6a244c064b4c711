#pragma once

#include <functional>
#include <optional>

#include "manager/checkpoint/image.h"
#include "manager/checkpoint/image_copying.h"
#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

struct OpenedStore {
  shm::Store store;
  /// kEmpty: made anew, zones have to be loaded. kImage, kDump: made from one, and brought up to
  /// the journal's end.
  enum class From : std::uint8_t { kLive, kEmpty, kImage, kDump } from = From::kLive;
  std::optional<LentImage> lent{};  ///< the image's chunks have yet to be copied
  /// With kImage: each chunk of the image's version is unchanged. False when the journal's records
  /// needed such chunks, so that no checkpoint can continue the image.
  bool has_image_version = true;
};

/// Brings a store up to the present before anybody else sees the store. A store that is attached to
/// later, however this process ends, then lags behind the journal by its last group at most.
using BringUp = std::function<Status(shm::Store&)>;

/// The sources from which a store can be made.
struct StoreSeeds {
  BringUp dump{};                          ///< fills an empty store from a dump; empty: no dump
  std::function<Status()> without_dump{};  ///< the dump failed; an error ends the opening
  Image* image = nullptr;                  ///< null or without index: no image
  BringUp bring_up{};                      ///< for a store made from the image
                                           ///< (replay_onto_image())
  bool copy_first = false;  ///< the whole image, whatever its size, before anything is served
  std::function<Status()> not_live{};  ///< called before a store is made; an error ends the opening
  std::function<void(const Error&)> image_not_used{};  ///< the image cannot be used
  /// No seed could be used, and the empty store is about to get its name.
  std::function<void()> begins_empty{};
};

/// Attaches to the live store. Without one for this build, makes a store from the dump, else from
/// the image, else an empty one. A seed that cannot be used is reported and left out, a dump only
/// if `without_dump` agrees. kExists: another manager runs.
Result<OpenedStore> open_store(const shm::StoreOptions& options, const StoreSeeds& seeds = {});

/// Applies the journal's records after the store's position, which were durable but not published
/// when the last manager died. A record that does not fit its zone's serial is skipped with a note.
Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note);

}  // namespace pando::manager
