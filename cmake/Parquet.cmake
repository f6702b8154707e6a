# libgallop_parquet.so, which reads Parquet files by Apache Arrow. The program loads it when it opens such a file.
#
#   -DGALLOP_PARQUET=OFF  leaves it out
#   -DGALLOP_ARROW=DIR    takes an existing Arrow of the same version, such as site-packages/pyarrow; without it,
#                         tools/fetch-arrow unpacks the pinned one into the user's cache.
option(GALLOP_PARQUET "Read Parquet files by Apache Arrow" ON)
set(GALLOP_ARROW "" CACHE PATH "An existing Apache Arrow; empty: the pinned one, from the user's cache")
set(GALLOP_ARROW_SOVERSION 2600)
if(NOT GALLOP_PARQUET)
  return()
endif()

if(GALLOP_ARROW)
  get_filename_component(arrow_folder ${GALLOP_ARROW} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
else()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/fetch-arrow
                                                                 ${PROJECT_SOURCE_DIR}/cmake/arrow.lock)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/fetch-arrow OUTPUT_VARIABLE arrow_folder
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(WARNING "Parquet files cannot be read: tools/fetch-arrow failed (see above)")
    return()
  endif()
endif()
set(arrow_libraries)
foreach(name arrow parquet)
  set(library_${name} library_${name}-NOTFOUND)
  find_file(library_${name} lib${name}.so.${GALLOP_ARROW_SOVERSION} PATHS ${arrow_folder} ${arrow_folder}/lib
            NO_DEFAULT_PATH NO_CACHE)
  if(NOT library_${name})
    message(FATAL_ERROR "${arrow_folder} has no lib${name}.so.${GALLOP_ARROW_SOVERSION}. Name another folder with "
                        "-DGALLOP_ARROW=DIR, leave it out to get the pinned one, or set -DGALLOP_PARQUET=OFF.")
  endif()
  list(APPEND arrow_libraries ${library_${name}})
endforeach()
get_filename_component(arrow_library_folder ${library_arrow} DIRECTORY)

add_library(gallop_parquet SHARED ${PROJECT_SOURCE_DIR}/parquet/parquet_file.cpp ${PROJECT_SOURCE_DIR}/parquet/value_text.cpp)
target_include_directories(gallop_parquet PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_include_directories(gallop_parquet SYSTEM PRIVATE ${arrow_folder}/include)
# It is a library of its own, which needs nothing of the program.
target_link_libraries(gallop_parquet PRIVATE gallop_fmt ${arrow_libraries})
set_target_properties(gallop_parquet PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} 
                                                BUILD_RPATH ${arrow_library_folder} INSTALL_RPATH ${arrow_library_folder})
add_dependencies(gallop_full gallop_parquet)
install(TARGETS gallop_parquet LIBRARY DESTINATION lib)
