# gallop_embed_headers(TARGET HEADER...): compiles the texts of headers (paths as in their #include) into the target, as
# a user's machine has no checkout but compiles kernels with them.
function(gallop_embed_headers target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_headers.cpp)
  set(entries "")
  foreach(header IN LISTS ARGN)
    set(path ${CMAKE_SOURCE_DIR}/src/${header})
    file(READ ${path} text)
    string(APPEND entries "    {\"${header}\", R\"header(${text})header\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "gallop/compile/codegen/embedded_headers.h"

namespace gallop::compile {

static constexpr EmbeddedHeader kHeaders[] = {
@entries@};

std::span<const EmbeddedHeader> embedded_headers() { return kHeaders; }

}  // namespace gallop::compile
]])
  target_sources(${target} PRIVATE ${output})
endfunction()
