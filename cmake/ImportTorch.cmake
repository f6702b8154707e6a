# gallop_import_torch(DIR): imports DIR/{include,lib} as target gallop_torch. Also part of the installed package.
#
# Only libtorch_cpu and libc10 are linked: they load without a GPU, a driver or Python, and find what
# they need (libgomp, libcudart, libcupti) by their own RPATH.
function(gallop_import_torch folder)
  set(wanted 2.11)
  set(found "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT found AND EXISTS ${folder}/include/${header})
      file(STRINGS ${folder}/include/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
      list(JOIN numbers "." found)
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR "${folder} is no LibTorch: it has no include/torch/headeronly/version.h. "
                        "GALLOP_TORCH must name a folder with include/ and lib/, such as site-packages/torch.")
  elseif(NOT found MATCHES "^${wanted}\\.")
    message(FATAL_ERROR "${folder} holds LibTorch ${found}, and Gallop needs ${wanted}. "
                        "Name another folder with -DGALLOP_TORCH=DIR, or leave it out to get the pinned one.")
  endif()

  foreach(library c10 torch_cpu)
    if(NOT EXISTS ${folder}/lib/lib${library}.so)
      message(FATAL_ERROR "${folder}/lib/lib${library}.so is missing: this LibTorch is incomplete.")
    endif()
    add_library(gallop_${library} SHARED IMPORTED GLOBAL)
    set_target_properties(gallop_${library} PROPERTIES IMPORTED_LOCATION ${folder}/lib/lib${library}.so
                                                       IMPORTED_SONAME lib${library}.so)
  endforeach()

  # A wheel unpacked by hand lacks the dependencies that pip would have installed.
  execute_process(COMMAND ldd ${folder}/lib/libtorch_cpu.so OUTPUT_VARIABLE needed ERROR_QUIET)
  string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${needed}")
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "${folder}/lib/libtorch_cpu.so cannot be loaded here: ${missing}.")
  endif()

  add_library(gallop_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(gallop_torch SYSTEM INTERFACE ${folder}/include
                                                           ${folder}/include/torch/csrc/api/include)
  # NDEBUG: without it some classes of the headers have other members than those of the compiled library.
  target_compile_definitions(gallop_torch INTERFACE NDEBUG _GLIBCXX_USE_CXX11_ABI=1 USE_DISTRIBUTED USE_C10D_GLOO)
  target_link_libraries(gallop_torch INTERFACE gallop_torch_cpu gallop_c10)

  # at::parallel_for is inline and runs on one thread without OpenMP. LibTorch's own libgomp is linked, as a second copy
  # would be a second thread pool.
  file(GLOB openmp ${folder}/lib/libgomp*.so.1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND openmp)
    target_compile_options(gallop_torch INTERFACE -fopenmp)
    target_link_libraries(gallop_torch INTERFACE ${openmp})
  endif()
endfunction()
