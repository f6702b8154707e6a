# What programs that load plug-ins are linked with. Also part of the installed package.

# gallop_program(TARGET [library...]): links a program with all of Gallop, whether it uses it or not, and lets plug-ins
# find the symbols. Its main() calls gallop::cli::run(). The libraries: all modules; by default those of the package.
function(gallop_program target)
  set(libraries ${ARGN})
  if(NOT libraries)
    set(libraries ${gallop_LIBRARIES})
  endif()
  target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# gallop_embed_abi(TARGET): gives it gallop/app/plugin_abi.h, which changes with any header. The target plugin_abi makes
# that header alone, as clang-tidy needs it before anything is built.
function(gallop_embed_abi target)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gallop/*.h)
  set(folder ${PROJECT_BINARY_DIR}/include)
  set(output ${folder}/gallop/app/plugin_abi.h)
  set(script ${PROJECT_SOURCE_DIR}/cmake/HashHeaders.cmake)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/src -DVERSION=${PROJECT_VERSION}
                             -DOUTPUT=${output} -P ${script}
                     DEPENDS ${headers} ${script} COMMENT "Hashing the headers for plug-ins" VERBATIM)
  add_custom_target(plugin_abi DEPENDS ${output})
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
