#pragma once

#include <string_view>

/// The files of http/page. The build puts their text into the program (CMakeLists.txt), which so
/// needs no file at run time.
namespace pando::http {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace pando::http
