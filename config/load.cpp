#include "config/load.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/secret.h"
#include "config/added_zones.h"
#include "config/files.h"
#include "config/includes.h"
#include "config/tables.h"
#include "config/yaml/document.h"
#include "config/zones.h"

namespace pando::config {

namespace {

/// An image keeps signatures over a restart of the host.
void warn_of_signing_without_image(Context& context) {
  const Settings& settings = context.settings;
  if (!settings.store.image.empty() ||
      std::ranges::none_of(settings.zones.options(), &ZoneOptions::is_signed_here))
    return;
  context.problems.warning(
      context.file, 0, "store.image",
      "is not set: a restart of the host signs all zones anew, and their secondaries get all of "
      "them");
}

void read_root(Context& context, YamlNode document) {
  const Value root(context, document, "", 1);
  if (document.is_null()) return;  // an empty file: defaults, no zones
  Members members(root);
  if (!document.is_mapping()) return;
  static_cast<void>(members.take(kInclude));  // read before
  read_members(root, members, kFirstSections, context.settings);
  // Catalogs name templates, and templates name catalogs; template names must therefore exist
  // first.
  TemplateReader templates(members.take("templates"));
  read_members(root, members, kLaterSections, context.settings);
  templates.read_options();
  add_catalog_zones(context);
  if (const auto zones = members.take("zones")) read_zones(*zones);
  if (const auto lists = members.take("zone-lists")) read_zone_lists(*lists);
  members.finish();
  warn_of_signing_without_image(context);
  // Read last: if the configuration also names an added zone, the configuration wins.
  find_added_list(context);
}

void read_document(Context& context, std::string_view text) {
  auto document = parse_file(context, context.file, text);
  if (!document) return;
  const bool whole = read_includes(context, *document, text);
  const Problems problems = context.problems;
  read_root(context, document->root());
  // Other files may refer to the contents of an unreadable file: such errors would mislead.
  if (!whole) context.problems = problems;
}

LoadResult load_into(Context& context, std::string_view text) {
  try {
    read_document(context, text);
  } catch (const std::exception& error) {
    context.problems.error(context.file, 0, "", error.what());
  }
  warn_of_open_includes(context);
  LoadResult result;
  context.problems.report(result);
  result.settings = std::move(context.settings);
  result.settings.templates = context.templates;
  result.settings.default_options = context.default_options;
  result.fingerprint = context.fingerprint;
  result.has_secrets = context.has_secrets;
  result.sources = std::move(context.sources);
  result.added_list_failed = context.added_list_failed;
  if (!context.unread.empty())
    result.lists = std::make_shared<UnreadLists>(
        UnreadLists{std::move(context.file), std::move(context.folder), std::move(context.unread),
                    std::move(context.templates), context.default_options});
  return result;
}

Context make_context(const std::string& path, const LoadOptions& options) {
  std::error_code ignored;  // without a current folder, relative paths stay relative
  const std::string folder = std::filesystem::absolute(path, ignored).parent_path().string();
  Context context{path, folder, options, {}, Problems(path), {}, 0, {}};
  context.settings.zones = ZoneTable(folder);
  context.settings.zones.add_options({});  // number 0: options without any template
  return context;
}

}  // namespace

std::string LoadResult::error_text() const {
  std::string text;
  for (const std::string& error : errors) text += (text.empty() ? "" : "\n") + error;
  return text;
}

LoadResult load(const std::string& path, const LoadOptions& options) {
  const WipeFreed wipe_freed;  // the text may have secrets, and the parser copies it many times
  LoadResult result;
  auto fd = open_regular_file(path);
  const auto text = fd ? read_open_file(*fd, path) : Result<std::string>(pass(fd));
  if (!text) {
    result.errors.push_back(text.error().text);
    return result;
  }
  result = load_text(*text, path, options);
  if (result.has_secrets && is_open_to_others(*fd))
    result.warnings.push_back(fmt::format(
        "{}: other users can read or write this file, which has secrets: chmod o= {}", path, path));
  return result;
}

LoadResult load_text(std::string_view text, const std::string& path, const LoadOptions& options) {
  const WipeFreed wipe_freed;
  Context context = make_context(path, options);
  context.fingerprint = fold_text(0, text);
  return load_into(context, text);
}

void read_lists(LoadResult& result) {
  const std::shared_ptr<UnreadLists> lists = std::exchange(result.lists, nullptr);
  if (!lists) return;
  Context context{lists->file,
                  lists->folder,
                  {},
                  std::move(result.settings),
                  Problems(lists->file),
                  lists->templates,
                  lists->default_options,
                  {}};
  try {
    for (const UnreadList& list : lists->lists) read_unread_list(context, list);
  } catch (const std::exception& error) {
    context.problems.error(context.file, 0, "", error.what());
  }
  LoadResult read;
  context.problems.report(read);
  result.settings = std::move(context.settings);
  result.added_list_failed = context.added_list_failed;
  for (std::string& error : read.errors) result.errors.push_back(std::move(error));
  for (std::string& warning : read.warnings) result.warnings.push_back(std::move(warning));
}

}  // namespace pando::config
