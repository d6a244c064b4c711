#pragma once

#include <memory>
#include <optional>

#include "manager/checkpoint/image.h"
#include "manager/checkpoint/image_copying.h"
#include "manager/checkpoint/placed_dump.h"
#include "manager/checkpoint/quarantined_image.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/journal/journal.h"
#include "manager/start/host.h"
#include "manager/start/server_parts.h"
#include "manager/start/zone_lists.h"
#include "shm/counts/zone_counts.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Store, slots, journal and image as a start found or made them.
struct OpenedData {
  std::optional<shm::Store> store;
  std::optional<shm::SlotTable> slots;
  std::optional<shm::ZoneCounts> zone_counts;  ///< empty: nothing is counted by zone
  std::optional<Journal> journal;
  std::unique_ptr<Image> image;  ///< until the checkpointer has it; null: no image is written
  shm::SlotTable::OwnPin image_pin;
  std::optional<LentImage> lent;  ///< until the copying has it; empty: there is nothing to copy
  QuarantinedImage quarantined;
  bool store_was_lost = false;  ///< the journal has records from before this store
  bool journal_in_memory = false;
  bool restored = false;        ///< the store was made from the image, or a dump
  /// The store may lack zones of the configuration, and its settings may be old.
  bool zones_missing = false;
  /// The store has the list of zones: workers start before all else.
  bool serves_first = false;
};

/// Opens the data of the manager: journal, store, slots, and the journal's records after the
/// store. Used once, before anything is served.
class Startup {
 public:
  /// The disk of journal, image and dump; models of a disk take its place.
  struct Disk {
    Files& files = native_files();
    JournalOptions journal{};  ///< the directory is that of the settings
  };
  /// A start that has to know all zones first reads `lists` and completes `configuration`; else
  /// both stay as they are. References outlive the object.
  Startup(const Host& host, CurrentConfiguration& configuration, UnreadLists& lists, Disk disk);

  Result<std::unique_ptr<OpenedData>> open();
  /// After an error: the zone lists are its cause.
  [[nodiscard]] bool lists_are_wrong() const noexcept { return lists_are_wrong_; }

 private:
  Status open_journal(const config::Settings& settings, shm::StoreOptions& options);
  Result<OpenedStore> open_store_from_seeds(const config::Settings& settings,
                                            const shm::StoreOptions& options);
  Status open_slots(const config::Settings& settings, const shm::StoreOptions& options);
  void share_with_http(const config::Settings& settings);
  void open_zone_counts(const config::Settings& settings);
  Status read_lists_first();
  [[nodiscard]] std::unique_ptr<Image> make_image(const config::StoreSettings& settings,
                                                  const shm::StoreOptions& options) const;
  [[nodiscard]] std::unique_ptr<PlacedDump> find_dump(const config::StoreSettings& settings,
                                                      const shm::StoreOptions& options) const;
  bool image_is_in_line();
  Status bring_up(shm::Store& restored);
  Status load_dump_into(shm::Store& empty);
  void end_dump(OpenedStore::From from);
  NoteSink gap_sink();
  Status take_store(OpenedStore& opened);
  Status replay_onto_live_store();
  void tell_what_store_has();
  void look_at_image(const OpenedStore& opened);
  Status publish_first_version();

  const Host& host_;
  CurrentConfiguration& configuration_;
  UnreadLists& lists_;
  Disk disk_;
  std::unique_ptr<OpenedData> data_ = std::make_unique<OpenedData>();
  std::unique_ptr<PlacedDump> dump_;  // until the store is there
  Status dump_failed_;                // a dump of another journal, when it was to replace the image
  bool lists_are_wrong_ = false;
};

}  // namespace pando::manager
