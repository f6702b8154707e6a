# Link options of programs that load plug-ins. Also part of the installed package.

# gallop_program(TARGET [library...]): links a program with whole modules and exports their symbols for plug-ins. Its
# main() calls gallop::cli::run(). The libraries are all modules; by default those of the package.
function(gallop_program target)
  set(libraries ${ARGN})
  if(NOT libraries)
    set(libraries ${gallop_LIBRARIES})
  endif()
  target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# gallop_embed_abi(TARGET): provides gallop/app/plugin_abi.h, which changes with any header. The target plugin_abi
# creates only that header, which clang-tidy needs before anything is built.
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
