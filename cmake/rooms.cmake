# One library target per room. ccixfer_room(core/base DEPS fmt::fmt ROOMS core/wire) makes target `core_base`
# from every .cc in the folder and links the rooms it may see. tests/layers.txt is the DAG that a test checks.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)

add_library(ccixfer_flags INTERFACE)
target_compile_options(ccixfer_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror -fno-omit-frame-pointer)
target_include_directories(ccixfer_flags INTERFACE ${CMAKE_SOURCE_DIR})
# Third-party code never sees our warnings, and assertions stay on in every build type.
target_compile_definitions(ccixfer_flags INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_DISABLE_CO_AWAIT
  SPDLOG_FMT_EXTERNAL SPDLOG_COMPILED_LIB)
if(CCIXFER_SANITIZE)
  target_compile_options(ccixfer_flags INTERFACE -fsanitize=${CCIXFER_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ccixfer_flags INTERFACE -fsanitize=${CCIXFER_SANITIZE})
endif()
target_link_libraries(ccixfer_flags INTERFACE Threads::Threads)

function(ccixfer_room room)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPS" ${ARGN})
  string(REPLACE "/" "_" target ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.cc)
  set(links ccixfer_flags ${ARG_DEPS})
  foreach(other ${ARG_ROOMS})
    string(REPLACE "/" "_" other_target ${other})
    list(APPEND links ${other_target})
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC ${links})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${links})
  endif()
endfunction()
