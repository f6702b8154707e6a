# Compiles tools/gallop_export.py into the target, so that `gallop model --export-helper` prints it.
function(gallop_embed_export_helper target)
  set(helper ${CMAKE_SOURCE_DIR}/tools/gallop_export.py)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/export_helper.cpp)
  file(READ ${helper} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${helper})
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "gallop/app/export_helper.h"

namespace gallop::app {

const char* export_helper() { return R"python(@text@)python"; }

}  // namespace gallop::app
]])
  target_sources(${target} PRIVATE ${output})
endfunction()
