#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/added_list.h"
#include "config/settings/settings.h"
#include "config/value.h"

/// Zones that were added by commands while the server ran. The manager keeps their list in the
/// journal's folder, since the configuration's own folder may be read-only. The list is read like
/// a zone list, after all others.
namespace pando::config {

/// Reads the list of the settings' journal, or leaves it to read_lists(). A journal that never had
/// a list has no added zones; a list that is missing is an error.
void find_added_list(Context& context);

/// Reads the list in this file. By name, since the manager before may have gone on writing it until
/// this process had the journal's lock.
void read_added_file(Context& context, const std::string& file);

/// Adds the zones of the list's text. A zone that the configuration also names gets a warning: the
/// configuration wins.
void read_added_list(Context& context, const std::string& file, std::string_view text);

/// Drops options that no zone has any more once there are many of them: each change of a zone's
/// settings may leave some.
void drop_unused_options(Settings& settings);

/// Adds zones to settings in force, each from a line of the list. After an error, which is that of
/// the first wrong line, or of a name that the settings have already, the zones are as before.
Status add_zones(Settings& settings, const std::vector<std::string>& lines);

}  // namespace pando::config
