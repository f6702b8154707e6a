# libgallop_cuda.so, which captures CUDA graphs of compiled steps: built by the C++ compiler if the headers of the CUDA
# toolkit and LibTorch's CUDA library are present, loaded by the program if there is a GPU.
if(NOT GALLOP_CUDA)
  return()
endif()
find_package(CUDAToolkit QUIET)
foreach(file IN ITEMS lib/libtorch_cuda.so lib/libc10_cuda.so include/c10/cuda/CUDAStream.h)
  if(NOT EXISTS ${GALLOP_TORCH_DIR}/${file})
    message(STATUS "Steps will not be CUDA graphs: LibTorch has no ${file}")
    return()
  endif()
endforeach()
file(GLOB cudart ${GALLOP_TORCH_DIR}/lib/libcudart.so.*)
string(REGEX MATCH "libcudart\\.so\\.([0-9]+)" found "${cudart}")
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_VERSION_MAJOR STREQUAL "${CMAKE_MATCH_1}")
  message(STATUS "Steps will not be CUDA graphs: the headers of CUDA ${CMAKE_MATCH_1} were not found (set CUDAToolkit_ROOT)")
  return()
endif()

add_library(gallop_cuda SHARED ${PROJECT_SOURCE_DIR}/cuda/device_graph.cpp)
target_include_directories(gallop_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(gallop_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
# Their own dependencies are present on machines with a GPU.
target_link_libraries(gallop_cuda PRIVATE gallop_torch ${GALLOP_TORCH_DIR}/lib/libtorch_cuda.so
                                          ${GALLOP_TORCH_DIR}/lib/libc10_cuda.so ${cudart})
target_link_options(gallop_cuda PRIVATE LINKER:--allow-shlib-undefined)
set_target_properties(gallop_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                             INSTALL_RPATH ${GALLOP_TORCH_DIR}/lib)
install(TARGETS gallop_cuda LIBRARY DESTINATION lib)
if(NOT EXISTS /dev/nvidiactl)
  message(STATUS "libgallop_cuda.so is compiled and not run: this machine has no NVIDIA driver")
endif()
