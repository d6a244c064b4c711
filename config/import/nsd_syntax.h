#pragma once

#include <vector>

#include "config/import/model/line_settings.h"

/// The syntax of nsd.conf: words, of which `keyword:` begins a section or a setting. Lines mean
/// nothing to NSD (its configlexer.lex).
namespace pando::config {

/// Parses a file and what it includes. Errors are `file:line: reason`; a word that is neither a
/// setting nor one of its values is an error, as it is to NSD.
Result<std::vector<SettingSection>> parse_nsd(const ImportText& text, ImportFiles& files,
                                              ImportReport& report);

}  // namespace pando::config
