#include "config/load.h"

#include <exception>
#include <filesystem>

#include "config/files.h"
#include "config/tables.h"
#include "config/zones.h"

namespace pando::config {

namespace {

void read_root(Context& context, const YAML::Node& document) {
  const Value root(context, document, "", 1);
  if (document.IsNull()) return;  // an empty file: defaults, no zones
  Members members(root);
  if (!document.IsMap()) return;
  read_members(root, members, kFirstSections, context.settings);
  // Catalogs name templates, and templates name catalogs: names first.
  TemplateReader templates(members.take("templates"));
  read_members(root, members, kCatalogSection, context.settings);
  templates.read_options();
  if (const auto zones = members.take("zones")) read_zones(*zones);
  if (const auto lists = members.take("zone-lists")) read_zone_lists(*lists);
  members.finish();
}

void read_documents(Context& context, const std::string& text) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  if (documents.size() > 1)
    context.problems.error(context.file, documents[1].Mark().line + 1, "",
                           "a second document: only one is read");
  if (!documents.empty()) read_root(context, documents.front());
}

LoadResult load_into(Context& context, const std::string& text) {
  try {
    read_documents(context, text);
  } catch (const YAML::Exception& error) {
    context.problems.error(context.file, error.mark.line + 1, "", error.msg);
  } catch (const std::exception& error) {
    context.problems.error(context.file, 0, "", error.what());
  }
  LoadResult result;
  context.problems.report(result);
  result.settings = std::move(context.settings);
  return result;
}

Context make_context(const std::string& path, const LoadOptions& options) {
  std::error_code ignored;  // without a current folder, relative paths stay relative
  const std::string folder = std::filesystem::absolute(path, ignored).parent_path().string();
  Context context{path, folder, options, {}, Problems(path), {}};
  context.settings.zones = ZoneTable(folder);
  context.settings.zones.add_options({});  // number 0: what holds without any template
  return context;
}

}  // namespace

std::string LoadResult::error_text() const {
  std::string text;
  for (const std::string& error : errors) text += (text.empty() ? "" : "\n") + error;
  return text;
}

LoadResult load(const std::string& path, const LoadOptions& options) {
  auto text = read_regular_file(path);
  if (text) return load_text(*text, path, options);
  LoadResult result;
  result.errors.push_back(std::move(text.error().text));
  return result;
}

LoadResult load_text(std::string_view text, const std::string& path, const LoadOptions& options) {
  Context context = make_context(path, options);
  return load_into(context, std::string(text));
}

}  // namespace pando::config
