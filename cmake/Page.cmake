# gallop_embed_page(TARGET): embeds src/gallop/ui/page/* and Chart.js into the target, since the program is one file and
# makes no external requests.
function(gallop_embed_page target)
  find_file(GALLOP_CHART_JS chart.min.js
            PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist REQUIRED NO_DEFAULT_PATH
            DOC "Chart.js 3.9, as Debian's libjs-chart.js has it")
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ui/page/*.html ${CMAKE_CURRENT_SOURCE_DIR}/ui/page/*.css
                                    ${CMAKE_CURRENT_SOURCE_DIR}/ui/page/*.js ${CMAKE_CURRENT_SOURCE_DIR}/ui/page/*.svg)
  list(APPEND files ${GALLOP_CHART_JS})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp)
  set(declarations "")
  set(entries "")
  set(number 0)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    set(path /${name})
    if(name STREQUAL "index.html")
      set(path /)
    elseif(file STREQUAL GALLOP_CHART_JS)
      set(path /chart.js)
    endif()
    set(symbol gallop_page_${number})
    string(APPEND declarations "GALLOP_FILE(${symbol}, \"${file}\")\n")
    string(APPEND entries "      {\"${path}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "gallop/ui/page_files.h"

#include <cstddef>

#define GALLOP_FILE(symbol, file)                                                       \
  asm(".section .rodata\n.globl " #symbol ", " #symbol "_end\n" #symbol ":\n.incbin \"" file "\"\n" #symbol                  \
      "_end:\n.byte 0\n.previous\n");                                                   \
  extern "C" __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[];

@declarations@
namespace gallop::ui {

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> kFiles = {
@entries@  };
  return kFiles;
}

}  // namespace gallop::ui
]])
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${files}" SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
