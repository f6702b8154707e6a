# LibTorch and the one copy of fmt: targets gallop_torch and gallop_fmt.
#
#   -DGALLOP_TORCH=DIR  takes an existing LibTorch (or a site-packages/torch of the same version);
#                       without it, tools/fetch-libtorch unpacks the pinned one into the user's cache.
set(GALLOP_TORCH "" CACHE PATH "An existing LibTorch; empty: the pinned one, from the user's cache")

include(${CMAKE_CURRENT_LIST_DIR}/ImportTorch.cmake)

# Debian's libtorch-dev puts headers of 1.13 into /usr/include, where any file could include them by mistake.
function(gallop_refuse_system_torch)
  string(REPLACE ":" ";" from_environment "$ENV{CPATH}:$ENV{CPLUS_INCLUDE_PATH}")
  foreach(folder IN LISTS CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES from_environment)
    if(folder AND (EXISTS ${folder}/ATen/Tensor.h OR EXISTS ${folder}/torch/script.h))
      message(FATAL_ERROR
        "${folder} holds the headers of another LibTorch, which every compiler call would see. "
        "Remove them (Debian and Ubuntu: apt-get remove libtorch-dev) or take the folder out of CPATH.")
    endif()
  endforeach()
endfunction()

function(gallop_fetch_torch result)
  set(script ${PROJECT_SOURCE_DIR}/tools/fetch-libtorch)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${script} ${PROJECT_SOURCE_DIR}/cmake/libtorch.lock ${PROJECT_SOURCE_DIR}/cmake/libtorch-cuda.lock)
  # NVIDIA's libraries, 2 GB, only if there is a driver.
  set(parts "")
  if(GALLOP_CUDA AND EXISTS /dev/nvidiactl)
    set(parts --cuda)
  endif()
  execute_process(COMMAND ${script} ${parts} OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "tools/fetch-libtorch failed (see above). "
                        "To use a LibTorch that is already here, configure with -DGALLOP_TORCH=DIR.")
  endif()
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

gallop_refuse_system_torch()
if(GALLOP_TORCH)
  get_filename_component(GALLOP_TORCH_DIR ${GALLOP_TORCH} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
else()
  gallop_fetch_torch(GALLOP_TORCH_DIR)
endif()
gallop_import_torch(${GALLOP_TORCH_DIR})

# LibTorch's headers use their bundled fmt, so all of Gallop uses it too: otherwise one program would contain two
# versions. It is compiled once (header-only use costs 2 s per file), and included through a folder that contains
# nothing else, so that a module without LibTorch still cannot include LibTorch.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fmt)
file(CREATE_LINK ${GALLOP_TORCH_DIR}/include/fmt ${PROJECT_BINARY_DIR}/fmt/fmt SYMBOLIC)
add_library(gallop_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt/format.cpp)
add_library(gallop::fmt ALIAS gallop_fmt)
target_include_directories(gallop_fmt SYSTEM PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/fmt>)
